"""Highlighted code for the page: Triton, CUDA and SASS."""

import re

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import RegexLexer, bygroups, words
from pygments.lexers import CudaLexer, PythonLexer
from pygments.token import Comment, Keyword, Name, Text

from ...offline import sass

PLAIN = re.compile(r'<span class="(?:n|o|p|w)">(.*?)</span>')  # names and punctuation, which stay uncoloured: half of all
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


def source(path):
    return _html(path.read_text(), PythonLexer() if path.suffix == ".py" else CudaLexer())


def listing(lines):
    return _html("\n".join(lines), SassLexer())


def _html(text, lexer):
    return PLAIN.sub(r"\1", highlight(text, lexer, HtmlFormatter(nowrap=True)))
