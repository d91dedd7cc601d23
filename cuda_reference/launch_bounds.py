"""The `__launch_bounds__` and `__cluster_dims__` of kernels for the emulation, which refuses other launches, as a GPU does.

g++ has no such attributes. So they are read from the source and defined again as C++ constants of the same template arguments:

    template <int BM, int BN> __global__ void __launch_bounds__(BM * BN) naive(...)

becomes `template <int BM, int BN> constexpr unsigned naive_threads = simt::first_of(BM * BN);`. Dimensions of clusters, where a
kernel has them, come after the bounds, and become `naive_cluster`.
"""

import re

_BEGIN, _NAMESPACE = re.compile(r"__global__ void __launch_bounds__(?=\()"), re.compile(r"^namespace (\w+) \{", re.MULTILINE)
_CLUSTERS, _TELLS = re.compile(r"\s*__cluster_dims__(?=\()"), {"threads": "at_most", "cluster": "in_clusters"}
_NAME = re.compile(r"\s*(?://.*\n\s*)?(\w+)\(")


def lines(expressions, files):
    """C++ code (before the module's function, inside it): the bounds of the expressions' kernels, where they have any."""
    bounds = {name: bound for file in files for name, bound in _bounds(file.read_text())}
    known = [(expression, *expression.partition("<")) for expression in expressions]
    known = [(expression, kernel, rest) for expression, kernel, *rest in known if kernel in bounds]
    constants = [constant for kernel in dict.fromkeys(kernel for _, kernel, _ in known) for constant in bounds[kernel].values()]
    calls = [
        f"    simt::{_TELLS[kind]}({expression}, {kernel}_{kind}{''.join(rest)});"  # of "gemm::tiled_threads<128, 128>"
        for expression, kernel, rest in known
        for kind in bounds[kernel]
    ]
    return constants, calls


def _bounds(text):
    """(kernel, {kind: the definition of its constant}) for each kernel in a file."""
    for match in _BEGIN.finditer(text):
        before, values = text[: match.start()].rstrip(), {"threads": _in_parentheses(text, match.end())}
        end = match.end() + len(values["threads"])
        if clusters := _CLUSTERS.match(text, end):
            values["cluster"] = _in_parentheses(text, clusters.end())
            end = clusters.end() + len(values["cluster"])
        (namespace,) = _NAMESPACE.findall(before)[-1:]
        name = _NAME.match(text, end)[1]
        template = before[before.rindex("\ntemplate <") :].strip() if before.endswith(">") else ""
        of = {kind: _constant(namespace, template, f"{name}_{kind}", value) for kind, value in values.items()}
        yield f"{namespace}::{name}", of


def _constant(namespace, template, name, value):
    return f"namespace {namespace} {{ {template} constexpr unsigned {name} = simt::first_of{value}; }}"


def _in_parentheses(text, start):
    depth = 0
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start : end + 1]
    raise ValueError(f"no end of {text[start : start + 40]!r}")
