"""Highlighted lines of HTML: Triton, CUDA, SASS and differences. A line that wraps hangs below its own indentation, and a line
of prose below its first word, so that it reads as text."""

import functools
import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, bygroups, words
from pygments.lexers import CudaLexer, PythonLexer
from pygments.token import Comment, Generic, Keyword, Name, Text

from ...offline import sass

PLAIN = re.compile(r'<span class="(?!c|k|s|g|n[fcd])\w+">(.*?)</span>')  # tokens without a colour, which are most
SPAN = re.compile(r'<span class="(?:\w+ )?([\w-]+)">')  # becomes the shortest tag that there is: a page has 20,000 of them
PROSE = re.compile(r"<i class=(?:sd|c1?)>(//+ +(?:- )?|# |)")  # of docstrings and comments: what stands before their text
HANG = 4  # columns, of code; page.css adds them to --i
WAITS = ("BAR", "DEPBAR", "LDGDEPBAR", "SYNCS", "WARP", "NANOSLEEP", "MEMBAR", "FENCE")


class SassLexer(RegexLexer):
    """The lines of sass.Code.listing(): arithmetic, memory, and what waits."""

    tokens = {  # noqa: RUF012
        "root": [
            (r"^ +\S+ \.\.\. \d+ more\n", Comment),
            (r"^([0-9a-f]+)( +)(@\S+)?( )", bygroups(Comment, Text, Name.Decorator, Text)),
            (words(WAITS, suffix=r"[\w.]*"), Keyword.Wait),
            (words(sass.MATH, suffix=r"[\w.]*"), Keyword.Math),
            (words((*sass.SHARED, *sass.GLOBAL, *sass.LOCAL), suffix=r"[\w.]*"), Keyword.Memory),
            (r"[^\n]*\n", Text),
        ]
    }


class DiffLexer(RegexLexer):
    """The lines of a unified diff, each one token."""

    tokens = {  # noqa: RUF012
        "root": [
            (r"(---|\+\+\+|@@).*\n", Comment),
            (r"\+.*\n", Generic.Inserted),
            (r"-.*\n", Generic.Deleted),
            (r".*\n", Text),
        ]
    }


@functools.cache
def source(path):
    """The lines of a file."""
    return _lines(path.read_text(), (PythonLexer if path.suffix == ".py" else CudaLexer)(stripnl=False))


def listing(lines):
    return _lines("\n".join(lines), SassLexer(stripnl=False))


def difference(lines):
    return _lines("\n".join(lines), DiffLexer(stripnl=False))


def _lines(text, lexer):
    html = PLAIN.sub(r"\1", highlight(text, lexer, HtmlFormatter(nowrap=True)))
    html = SPAN.sub(r"<i class=\1>", html).replace("</span>", "</i>")
    return list(map(_line, text.splitlines(), html.splitlines()))


def _line(text, html):
    if html.startswith("<i class=g"):
        text = " " + text[1:]  # without the sign of a difference
    prose = PROSE.match(html.lstrip())
    indent = len(text) - len(text.lstrip()) + (len(prose[1]) - HANG if prose else 0)
    return f"<i class=l{f' style=--i:{indent}' if indent else ''}>{html}\n</i>"
