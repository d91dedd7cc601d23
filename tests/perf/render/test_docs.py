"""`perf docs` writes stale files, removes files that are no longer generated, and --check lists both without matplotlib."""

import pytest

from perf.__main__ import main
from perf.render import docs
from perf.show import plot
from perf.show.picture import Picture


def line(figure, numbers):
    figure.add_subplot().plot(numbers)


@pytest.fixture
def folder(monkeypatch, tmp_path):
    """docs has a page and a drawing, both stale, and a chart that is not generated."""
    for name in ("gemm", "charts"):
        (tmp_path / name).mkdir()
    files = {"page.md": "old", "gemm/drawing.svg": "data 0123", "charts/left.svg": "over"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(docs, "ROOT", tmp_path)
    monkeypatch.setattr(docs, "CHARTS", tmp_path / "charts")
    monkeypatch.setattr(docs.chapter, "PAGES", {"gemm": tmp_path / "gemm"})
    monkeypatch.setattr(docs, "_texts", lambda slow=False: {tmp_path / "page.md": "new"})
    monkeypatch.setattr(docs, "_pictures", lambda: {tmp_path / "gemm/drawing.svg": Picture(line, {"numbers": [1]})})
    return tmp_path


def test_check_names_what_is_out_of_date_and_writes_nothing(folder, capsys, monkeypatch):
    monkeypatch.setattr(plot, "available", lambda: False)
    assert main(["docs", "--check"]) == 1
    stale = [f"out of date: {name}" for name in ("charts/left.svg", "gemm/drawing.svg", "page.md")]
    assert capsys.readouterr().out.splitlines() == stale
    assert (folder / "page.md").read_text() == "old"


def test_tables_of_other_machine_code_are_named_and_kept(folder, capsys, monkeypatch):
    (folder / "page.md").write_text("new")
    monkeypatch.setattr(docs, "_pictures", dict)
    monkeypatch.setattr(docs.chapter, "has_other_code", lambda text: text == "new")
    assert main(["docs"]) == 1 and "perf docs --compile" in capsys.readouterr().err
    assert main(["docs", "--check"]) == 1
    assert capsys.readouterr().out.splitlines() == [f"{docs.OTHER_CODE}: page.md"]


def test_it_is_current_once_written(folder, capsys):
    pytest.importorskip("matplotlib")
    assert main(["docs"]) == 0 and main(["docs", "--check"]) == 0
    assert (folder / "page.md").read_text() == "new" and not (folder / "charts/left.svg").exists()


def test_without_matplotlib_it_says_what_to_install(folder, capsys, monkeypatch):
    monkeypatch.setattr(plot, "available", lambda: False)
    with pytest.raises(SystemExit):
        main(["docs"])
    assert "pip install 'tritonkernels[plot]'" in capsys.readouterr().err
