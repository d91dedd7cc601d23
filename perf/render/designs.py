"""python -m perf designs: the README's table of designs, generated from DESIGNS so that it cannot lag behind."""

import importlib
import re
from pathlib import Path

import cuda_reference
import tritonkernels

from .. import ROOT

README = ROOT / "README.md"
BETWEEN = re.compile(r"(<!-- designs: .*? -->\n).*?(<!-- /designs -->)", re.DOTALL)


def table():
    """Markdown: a row per design, the twins of one name side by side."""
    lines = ["| operation | design | what it does | Triton | CUDA | mirrors |", "|---|---|---|---|---|---|"]
    for op in tritonkernels.OPS:
        where = getattr(importlib.import_module(f"tritonkernels.{op}"), "REDUCES_TO", op)  # whose designs these are
        triton, cuda = ({d.name: d for d in library.designs(op)} for library in (tritonkernels, cuda_reference))
        for name in dict.fromkeys([*cuda, *triton]):
            design = triton.get(name) or cuda[name]
            files = [
                f"[{name}.py](tritonkernels/{where}/{name}.py)" if name in triton else "",
                cuda_file(where, name) if name in cuda else "",
            ]
            lines.append(f"| {op} | `{name}` | {design.summary} | {files[0]} | {files[1]} | {design.mirrors} |")
    return "\n".join(lines) + "\n"


def cuda_file(where, name):
    """The link to its kernel, or to what launches those of another operation."""
    kernel, launch = (f"cuda_reference/{where}/{name}{suffix}" for suffix in (".cuh", ".py"))
    path = kernel if (README.parent / kernel).exists() else launch
    return f"[{Path(path).name}]({path})"


def with_table(text):
    return BETWEEN.sub(lambda match: match[1] + table() + match[2], text)


def add_arguments(parser):
    parser.add_argument("--write", action="store_true", help="put it into README.md instead of printing it")


def main(options, parser):
    if options.write:
        README.write_text(with_table(README.read_text()))
    else:
        print(table(), end="")
    return 0
