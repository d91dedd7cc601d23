"""A dict that prints as aligned lines: what explain() and doctor() return."""


def _lines(values, indent):
    width = max((len(str(key)) for key in values), default=0)
    for key, value in values.items():
        if isinstance(value, dict) and value:
            yield f"{indent}{key}"
            yield from _lines(value, indent + "  ")
        else:
            text = f"{value:.4g}" if isinstance(value, float) else "unknown" if value is None else str(value)
            yield f"{indent}{key:<{width}}  {text}"


class Report(dict):
    """Facts by name; print it to read it, index it to use it."""

    def __str__(self):
        return "\n".join(_lines(self, ""))
