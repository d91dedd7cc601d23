"""The table shows what was measured, with rich and without, and never a time that no GPU took."""

import io
import sys

import pytest
from stand_ins import record

from perf.show import table

RIGHT = record(backend="interpreter", median_ms=None)
WRONG = record(backend="interpreter", median_ms=None, ok=False, design="broken", error=None)
TIMED = record(
    p20_ms=0.24, p80_ms=0.26, gbps=4200.0, tflops=2.1, bound_by="memory", exposed=0.0, ratio_to_torch=1.25, call_ms=0.0113
)


@pytest.fixture(params=["rich", "plain"])
def shown(request, monkeypatch):
    if request.param == "plain":
        for module in ("rich", "rich.console", "rich.table", "rich.progress"):
            monkeypatch.setitem(sys.modules, module, None)  # makes the import fail
    else:
        pytest.importorskip("rich")

    def show(*records):
        file = io.StringIO()
        table.show(records, file)
        return file.getvalue()

    return show


def test_rows_on_a_cpu(shown):
    heading, *lines = [line.split() for line in shown(RIGHT, WRONG).splitlines() if set(line) - {"-", " "}]
    assert heading[-3:] == ["error", "bound", "ok"]
    assert lines[0] == ["gemv", "3x4", "triton", "warp_per_row", "interpreter", "ieee", "1.0e-07", "2.0e-06", "yes"]
    assert lines[1] == ["gemv", "3x4", "triton", "broken", "interpreter", "ieee", "2.0e-06", "NO"]


def test_no_times_without_a_gpu(shown):
    text = shown(RIGHT)
    assert not any(word in text for word in ("GPU us", "call us", "GB/s", "TFLOP/s", "x torch"))


def test_times_on_a_gpu(shown):
    text = shown(TIMED)
    for part in ("250.0", "240.0-260.0", "4200 GB/s", "1.25", "11.3"):
        assert part in text


def test_the_rate_follows_what_binds(shown):
    assert "2.10 TFLOP/s" in shown(record(**{**vars(TIMED), "bound_by": "compute"}))


def test_exposed_times_are_marked(shown):
    assert "240.0-260.0*" in shown(record(**{**vars(TIMED), "exposed": 0.1}))


def test_a_row_that_was_not_timed_among_timed_ones(shown):
    assert "broken" in shown(TIMED, WRONG)


def test_brackets_are_text_not_markup(shown):
    assert "[bold]" in shown(record(case="[bold]", median_ms=None))


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize("columns", [60, 100, 140, 200])
def test_a_narrow_terminal_keeps_every_figure(shown, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("TERM", "dumb")  # no codes of colours among the text
    file, named = Terminal(), record(**{**vars(TIMED), "case": "4096x4096x4096 float16 to float32"})
    table.show([named, TIMED], file)
    text = file.getvalue()
    _, cells = table.rows([named, TIMED])
    for word in {word for row in cells for text in row for word in text.split()}:
        assert word in text.split(), f"{word} is cut"
    if columns != 140:  # there, names are wrapped, by rich alone
        assert max(map(len, text.splitlines())) <= columns


def test_columns_of_names_give_way_to_figures():
    columns = [["a long name", "another"], ["12.5", "3.75"]]
    assert table.column_widths(columns, 40) == [11, 4]
    assert table.column_widths(columns, 12) == [8, 4]
    assert table.column_widths(columns, 10) is None


@pytest.mark.usefixtures("shown")
def test_progress_is_silent_where_nobody_watches(capsys):
    with table.progress(2) as advance:
        advance("one")
        advance("two")
    assert capsys.readouterr() == ("", "")


def test_plain_columns_line_up():
    assert table.plain(["a", "long"], [["wide", "x"]]) == "a     long\n----  ----\nwide  x"


def test_markdown():
    assert table.markdown(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
