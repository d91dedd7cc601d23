"""Tables of records and of other rows of text: by rich where it is installed, else as plain text."""

import shutil
import sys
import textwrap

from tritonkernels.report import plain
from tritonkernels.report import progress as progress

NO_BREAK = "\N{NO-BREAK SPACE}"


def rows(records):
    """(headings, rows of text). Without times from a GPU there are no columns of speed."""
    timed = any(r.median_ms is not None for r in records)
    headings = ["problem", "implementation", "design", "backend", "precision", "error", "bound", "ok"]
    headings += ["GPU us", "p20-p80", "rate", "x torch", "call us"] if timed else []
    return headings, [_row(r) + (_speed(r) if timed else []) for r in records]


def _row(r):
    return [f"{r.op} {r.case}", r.implementation, r.design, r.backend, r.precision, _short(r.error), _short(r.bound), _ok(r)]


def _speed(r):
    if r.median_ms is None:
        return ["", "", "", "", ""]
    spread = f"{1e3 * r.p20_ms:.1f}-{1e3 * r.p80_ms:.1f}" + "*" * bool(r.exposed) + "!" * bool(r.throttled)
    rate = f"{r.gbps:.0f} GB/s" if r.bound_by == "memory" else f"{r.tflops:.2f} TFLOP/s"
    ratio = "" if r.ratio_to_torch is None else f"{r.ratio_to_torch:.2f}"
    return [f"{1e3 * r.median_ms:.1f}", spread, rate, ratio, "" if r.call_ms is None else f"{1e3 * r.call_ms:.1f}"]


def _short(number):
    return "" if number is None else f"{number:.1e}"


def _ok(r):
    return "yes" if r.ok else "NO"


def show(records, file=None):
    """Print the table to `file` (standard output)."""
    print_table(*rows(records), [None if record.ok else "bold red" for record in records], file)


def print_table(headings, body, styles=None, file=None):
    """Print rows of text under headings; as lines of their own where columns would cut words. `styles` are rich's, or None."""
    file = file or sys.stdout
    width = shutil.get_terminal_size().columns if file.isatty() else 250  # a pipe has no width: it is enough for the rows
    widths = column_widths(list(zip(headings, *body)), width - 2 * len(headings) + 2)
    if not widths:
        print("\n".join(stacked(headings, body, width)), file=file)
        return
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(plain(headings, body), file=file)
        return
    table = Table(box=None, pad_edge=False)
    for heading, own in zip(headings, widths):
        table.add_column(heading, width=own)
    for cells, style in zip(body, styles or [None] * len(body)):
        table.add_row(*cells, style=style)
    # Without a height, rich takes a "dumb" terminal (an editor's) for one of 80 columns.
    Console(file=file, width=width, height=25, highlight=False, markup=False).print(table)


def column_widths(columns, room):
    """Widths of columns of texts, less where texts of several words lack room; None if there is none without cuts."""
    widths = [max(map(len, column)) for column in columns]
    least = [max(len(word) for text in column for word in [*text.split(), ""]) for column in columns]
    for i in sorted(range(len(columns)), key=lambda i: least[i] - widths[i]):
        widths[i] = max(least[i], widths[i] - max(0, sum(widths) - room))
    return widths if sum(widths) <= room else None


def stacked(headings, body, width):
    """The rows as lines of at most so many columns, each figure behind its heading."""
    for cells in body:
        facts = "  ".join(f"{heading} {text}".replace(" ", NO_BREAK) for heading, text in zip(headings, cells) if text.strip())
        yield textwrap.fill(facts, width, subsequent_indent="    ", break_on_hyphens=False).replace(NO_BREAK, " ")


def markdown(headings, body):
    lines = (headings, ["---"] * len(headings), *body)
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def us(ms):
    return three_digits(1e3 * ms)


def three_digits(x):
    """A number with at least three digits."""
    return f"{x:.0f}" if x >= 99.95 else f"{x:.1f}" if x >= 9.995 else f"{x:.2f}"
