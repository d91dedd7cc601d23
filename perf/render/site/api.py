"""The page of the API: signatures and docstrings of what users import, read from the sources, so that nothing is imported."""

import ast
import re

from ... import ROOT

MODULES = {  # the names that their page has
    "tritonkernels": None,  # all public ones
    "tritonkernels.annotations": (),
    "tritonkernels.nn": None,
    "tritonkernels.errors": None,
    "tritonkernels.report": ("Report",),
    "tritonkernels.numerics": ("Bound", "error_bound", "gamma", "judge", "reference"),
    "cuda_reference": None,
}
DEFINITIONS = (ast.FunctionDef, ast.ClassDef)
WIDTH = 96  # of a signature's line
BETWEEN = re.compile(r", (?=[\w*])(?![^\[]*\])")  # arguments, not inside a type's brackets
NAMED = re.compile(r"^([\w*]+(?:, [\w*]+)*) +(\S.*)")  # a line of a list of arguments
DEFINED = re.compile(NAMED.pattern.replace(" +(", " {2,}("))  # its first line: two spaces or more between name and text


def markdown():
    """The page, with links from the folder docs."""
    sections = (f"## {module}\n\n{''.join(_section(module, names))}" for module, names in MODULES.items())
    return "# API\n\nThe public names of both packages, with the docstrings of their sources.\n\n" + "\n".join(sections)


def _section(module, names):
    file = _file(ROOT.joinpath(*module.split(".")))
    tree = ast.parse(file.read_text())
    yield prose(ast.get_docstring(tree))
    if named := _types(tree):
        yield "```python\n" + "\n".join(named) + "\n```\n\n"
    for name in _public(tree) if names is None else names:
        found = definition(name, file)
        if found:
            node, where = found
            code = f"```python\n{signature(node)}\n```"
            link = f"[source](../{where.relative_to(ROOT)})"
            yield f'### {module}.{name} {{ data-toc-label="{name}" }}\n\n{code}\n\n{prose(ast.get_docstring(node))}{link}\n\n'


def _file(path):
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def _public(tree):
    """__all__, else the public functions and classes."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return [node.name for node in tree.body if isinstance(node, DEFINITIONS) and not node.name.startswith("_")]


def _types(tree):
    """The types that a module names, as it defines them."""
    assigned = (ast.unparse(node) for node in tree.body if isinstance(node, ast.Assign))
    return [line for line in assigned if re.match("[A-Z][a-z]", line)]


def definition(name, file):
    """The node of the function or class that a file defines or imports under a name, and its file; None for another name."""
    for node in ast.parse(file.read_text()).body:
        if isinstance(node, DEFINITIONS) and node.name == name:
            return node, file
        if isinstance(node, ast.ImportFrom) and name in (alias.asname or alias.name for alias in node.names):
            package = file.parents[node.level - 1] if node.level else ROOT
            return definition(name, _file(package.joinpath(*(node.module or "").split("."))))
    return None


def signature(node):
    """The signature, a class's from its __init__; an argument a line if it is long."""
    own = node
    if isinstance(node, ast.ClassDef):
        own = next((own for own in node.body if getattr(own, "name", None) == "__init__"), None)
        if own is None:
            return f"class {node.name}({', '.join(map(ast.unparse, node.bases))})"
    arguments = re.sub("(: [^=]*)=", r"\1 = ", ast.unparse(own.args).removeprefix("self, "))  # spaces as in the sources
    returned = f" -> {ast.unparse(own.returns)}" if own is node and own.returns else ""
    line = f"{node.name}({arguments}){returned}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{node.name}(", *(f"    {argument}," for argument in BETWEEN.split(arguments)), f"){returned}"])


def prose(docstring):
    """A docstring as Markdown, whose lists of arguments are lists."""
    blocks = re.split(r"\n\n+", docstring or "")
    return "".join(f"{_items(block) if DEFINED.match(block) else _escaped(block)}\n\n" for block in blocks if block)


def _items(block):
    """`name   text`, with lines of text that are indented further, as items."""
    return _escaped("\n".join(NAMED.sub(r"- **`\1`**: \2", re.sub(r"^ +", "    ", line)) for line in block.splitlines()))


def _escaped(block):
    """The block with Markdown's emphasis and HTML escaped; code is left as it is."""
    if block.startswith("    "):
        return block
    pieces = re.split(r"(`[^`]*`)", block)
    pieces[::2] = [re.sub(r"(?<!\*)\*(?!\*)|[<_]", r"\\\g<0>", piece) for piece in pieces[::2]]
    return "".join(pieces)
