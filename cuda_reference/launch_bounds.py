"""The `__launch_bounds__` of kernels for the emulation, which refuses a launch with more threads, as a GPU does.

g++ has no such attribute. So they are read from the source and defined again as C++ constants of the same template arguments:

    template <int BM, int BN> __global__ void __launch_bounds__(BM * BN) naive(...)

becomes `template <int BM, int BN> constexpr unsigned naive_threads = simt::first_of(BM * BN);`.
"""

import re

_BEGIN, _NAMESPACE = re.compile(r"__global__ void __launch_bounds__(?=\()"), re.compile(r"^namespace (\w+) \{", re.MULTILINE)
_NAME = re.compile(r"\s*(?://.*\n\s*)?(\w+)\(")


def lines(expressions, files):
    """C++ code (before the module's function, inside it): the bounds of the expressions' kernels, where they have any."""
    bounds = {name: bound for file in files for name, bound in _bounds(file.read_text())}
    known = [expression for expression in expressions if expression.partition("<")[0] in bounds]
    constants = [bounds[name] for name in dict.fromkeys(expression.partition("<")[0] for expression in known)]
    return constants, [f"    simt::at_most({expression}, {_constant(expression)});" for expression in known]


def _constant(expression):
    """The expression's bound: "gemm::tiled_threads<128, 128>"."""
    name, bracket, arguments = expression.partition("<")
    return f"{name}_threads{bracket}{arguments}"


def _bounds(text):
    """(kernel, the definition of its bound's constant) for each kernel in a file."""
    for match in _BEGIN.finditer(text):
        before, bound = text[: match.start()].rstrip(), _in_parentheses(text, match.end())
        (namespace,) = _NAMESPACE.findall(before)[-1:]
        name = _NAME.match(text, match.end() + len(bound))[1]
        template = before[before.rindex("\ntemplate <") :].strip() if before.endswith(">") else ""
        constant = f"namespace {namespace} {{ {template} constexpr unsigned {name}_threads = simt::first_of{bound}; }}"
        yield f"{namespace}::{name}", constant


def _in_parentheses(text, start):
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start : end + 1]
    raise ValueError(f"no end of {text[start : start + 40]!r}")
