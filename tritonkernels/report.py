"""A dict that prints as aligned lines: what explain() and doctor() return; and rows of text in columns."""


def _lines(values, indent):
    width = max((len(str(key)) for key in values), default=0)
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{key}"
            yield from _lines(value, indent + "  ")
        elif isinstance(value, list) and value and all(isinstance(row, dict) for row in value):
            yield f"{indent}{key}"
            yield from (f"{indent}  {'  '.join(map(_text, row.values()))}" for row in value)
        else:
            yield f"{indent}{key:<{width}}  {_text(value)}"


def _text(value):
    if isinstance(value, dict):
        return " ".join(f"{name}={_text(own)}" for name, own in value.items())
    return f"{value:.4g}" if isinstance(value, float) else "unknown" if value is None else str(value)


class Report(dict):
    """Facts by name; print it to read it, index it to use it."""

    def __str__(self):
        return "\n".join(_lines(self, ""))


def plain(headings, body):
    """Rows of text under headings, in columns."""
    widths = [max(map(len, column)) for column in zip(headings, *body)]
    lines = (headings, ["-" * width for width in widths], *body)
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)
