"""A dict that prints as aligned lines: what explain() and doctor() return; rows of text in columns; tables for notebooks."""

import contextlib
from html import escape
from typing import Any

TABLE = "border-collapse:collapse;color:inherit;background:none"
CELL = "text-align:left;vertical-align:top;white-space:pre-wrap;padding:2px 8px;border:1px solid rgba(128,128,128,.4)"


def _lines(values, indent):
    width = max((len(str(key)) for key in values), default=0)
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{key}"
            yield from _lines(value, indent + "  ")
        elif _are_rows(value):
            yield f"{indent}{key}"
            yield from (f"{indent}  {'  '.join(map(_text, row.values()))}" for row in value)
        else:
            yield f"{indent}{key:<{width}}  {_text(value)}"


def _are_rows(value):
    return isinstance(value, list) and bool(value) and all(isinstance(row, dict) for row in value)


def _text(value):
    if isinstance(value, dict):
        return " ".join(f"{name}={_text(own)}" for name, own in value.items())
    return f"{value:.4g}" if isinstance(value, float) else "unknown" if value is None else str(value)


class Report(dict[str, Any]):
    """Facts by name; print it to read it, index it to use it."""

    def __str__(self) -> str:
        return "\n".join(_lines(self, ""))

    def _repr_html_(self) -> str:
        return as_html(self)


def plain(headings, body) -> str:
    """Rows of text under headings, in columns."""
    widths = [max(map(len, column)) for column in zip(headings, *body)]
    lines = (headings, ["-" * width for width in widths], *body)
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)


@contextlib.contextmanager
def progress(total, quiet=False):
    """Yields advance(description, by=1), which moves a bar on standard error; silent if quiet, without a terminal or rich."""
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ImportError:
        yield lambda description, by=1: None
        return
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=quiet or not console.is_terminal) as bar:
        task = bar.add_task("", total=total)
        started = -1

        def advance(description, by=1):
            nonlocal started
            started += by
            bar.update(task, completed=started, description=description)

        yield advance


def as_html(value: Any) -> str:
    """A dict as a table of a row per name, with tables inside, and a list of dicts as one with headings; the rest as text.

    The colours are those of the page around it, light or dark.
    """
    if isinstance(value, dict) and value:
        return _table(_cell("th", str(name)) + _cell("td", own) for name, own in value.items())
    if _are_rows(value):
        headings = "".join(_cell("th", name) for name in value[0])
        return _table([headings, *("".join(_cell("td", _text(own)) for own in row.values()) for row in value)])
    return escape(_text(value))


def _table(rows):
    return f'<table style="{TABLE}">{"".join(f"<tr>{row}</tr>" for row in rows)}</table>'


def _cell(tag, value):
    return f'<{tag} style="{CELL}">{as_html(value)}</{tag}>'
