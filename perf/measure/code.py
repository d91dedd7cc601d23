"""What of a source file is run: its text without comments and docstrings, which may change without it."""

import ast
import re

BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")  # of statements, in which others stand
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
C_TOKENS = re.compile(  # strings, and comments, each of which separates two tokens
    r"""(?P<text>R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])')|//[^\n]*|/\*.*?\*/""", re.DOTALL
)
PYTHON_TOKENS = re.compile(  # the same; what precedes a string's quotes changes nothing
    r"""(?P<text>\"{3}(?:\\.|[^\\])*?\"{3}|'{3}(?:\\.|[^\\])*?'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')|#[^\n]*""", re.DOTALL
)
TOKENS = {".py": PYTHON_TOKENS, **dict.fromkeys((".cuh", ".h", ".cpp", ".cu"), C_TOKENS)}


def of(suffix, content):
    """What of a file's bytes is run. Text is cut by positions, not printed again: every Python must come to the same."""
    if suffix not in TOKENS:
        return content
    if suffix == ".py":
        lines = content.splitlines(keepends=True)
        for said in reversed([*_docstrings(ast.parse(content))]):
            first, last = lines[said.lineno - 1], lines[said.end_lineno - 1]
            lines[said.lineno - 1 : said.end_lineno] = [first[: said.col_offset] + last[said.end_col_offset :]]
        content = b"".join(lines)
    between = "" if suffix == ".py" else " "
    text = TOKENS[suffix].sub(lambda match: match["text"] or between, content.decode())
    if suffix != ".py":
        text = re.sub(r"^\s+", "", text, flags=re.MULTILINE)
    return "\n".join(line.rstrip() for line in text.splitlines() if line.strip()).encode()


def _docstrings(node):
    """The docstrings of a statement and of those in it, in their order."""
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        yield node.body[0].value
    for block in BLOCKS:
        for statement in getattr(node, block, ()):
            yield from _docstrings(statement)
