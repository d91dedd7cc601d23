"""A picture knows without matplotlib whether its file is current: by its data and the function that draws them."""

import pytest

from perf.__main__ import main
from perf.render import chapter, plot
from perf.render.picture import Picture


def line(figure, numbers):
    figure.add_subplot().plot(numbers)


def points(figure, numbers):
    figure.add_subplot().plot(numbers, "o")


def test_it_is_stale_where_the_data_or_the_function_differ(tmp_path):
    pytest.importorskip("matplotlib")
    picture, path = Picture(line, {"numbers": [1, 2]}), tmp_path / "picture.svg"
    assert picture.stale(path)
    path.write_text(picture.svg())
    assert not picture.stale(path)
    assert Picture(line, {"numbers": [1, 3]}).stale(path)
    assert Picture(points, {"numbers": [1, 2]}).stale(path)


def test_the_same_picture_is_the_same_file_and_names_no_version():
    matplotlib = pytest.importorskip("matplotlib")
    picture = Picture(line, {"numbers": [1, 2]})
    assert picture.svg() == picture.svg()
    assert matplotlib.__version__ not in picture.svg()


@pytest.fixture
def an_old_drawing(monkeypatch, tmp_path):
    """docs has one drawing, whose file was drawn from other data."""
    (tmp_path / "gemm").mkdir()
    (tmp_path / "gemm/drawing.svg").write_text("data 0123")
    monkeypatch.setattr(chapter, "ROOT", tmp_path)
    monkeypatch.setattr(chapter, "CHAPTER", tmp_path / "gemm.md")
    monkeypatch.setattr(chapter, "CHAPTERS", ())
    monkeypatch.setattr(chapter, "DRAWINGS", {"drawing": Picture(line, {"numbers": [1]})})


def test_chapter_names_an_old_drawing_and_draws_it(an_old_drawing, capsys):
    pytest.importorskip("matplotlib")
    assert main(["chapter", "--check"]) == 1
    assert capsys.readouterr().out == "out of date: gemm/drawing.svg\n"
    assert main(["chapter"]) == 0 and main(["chapter", "--check"]) == 0


def test_without_matplotlib_chapter_says_what_to_install(an_old_drawing, capsys, monkeypatch):
    monkeypatch.setattr(plot, "available", lambda: False)
    with pytest.raises(SystemExit):
        main(["chapter"])
    assert "pip install 'tritonkernels[plot]'" in capsys.readouterr().err
