"""Which steps the gate has, and how long they take: no outcome depends on this file.

A step's name is its check, the family of operations that it is of, if it is of one, and its share of that family's tests:
calls-gemm, tests-matmul-2of6, racecheck.
"""

import re

FAMILIES = {  # written here, so that pytest's plugin need not import torch
    "gemm": ("gemm",),
    "gemv": ("gemv",),
    "matmul": ("matmul",),
    "conv2d": ("conv2d", "conv2d_input", "conv2d_weight", "conv2d_bias"),  # its gradients are calls of each other
}
OPS = tuple(op for ops in FAMILIES.values() for op in ops)
REST = "rest"  # what is no family's own among the tests
ACROSS = ("designs", "operations", "properties")  # folders of tests that run over operations
AROUND = ("choice", "exploits", "gate", "mutants", "perf", "tools")  # folders of tests of what is around the packages
BY_FAMILY = ("build", "calls", "memcheck", "large")
WHOLE = ("racecheck", "synccheck", "consan", "gsan", "around", "two_gpus")  # of all families at once: most take 20 s
QUICKER = ("tests", "around")  # checks that --quick changes
CUDA_ALONE = ("build", "racecheck", "synccheck")  # checks that no Triton can change
# Into how many steps a family's tests are divided: each has 40 s in which its processes start and wait for the last of them.
SHARES = {"gemm": 1, "gemv": 1, "matmul": 6, "conv2d": 2, REST: 3}
QUICK_SHARES = {"gemm": 1, "gemv": 1, "matmul": 3, "conv2d": 1, REST: 1}
# Seconds that a step takes on an H200 with 16 cores, until it has ended once: then by its record.
EXPECTED = {"build": 60, "calls": 45, "memcheck": 60, "large": 60, "tests": 220, "around": 100}


def names(package=None, quick=False):
    """The steps in order, those that build kernels for others first. `package`: without what only cuda_reference takes part
    in. `quick`: with fewer tests."""
    shares = QUICK_SHARES if quick else SHARES
    tests = [f"tests-{family}-{i}of{count}" for family, count in shares.items() for i in range(1, count + 1)]
    every = [*(f"{check}-{family}" for check in BY_FAMILY for family in FAMILIES), *tests, *WHOLE]
    return [name for name in every if not (package and parts(name)[0] in CUDA_ALONE)]


def parts(name):
    """(check, family, "I/N") of a step's name; "" for what it has not."""
    check, family, shard, *_ = (*name.split("-"), "", "")
    return check, family, shard.replace("of", "/")


def family(op):
    """The family of the operation; "rest" of what is none."""
    return next((name for name, ops in FAMILIES.items() if op in ops), REST)


def family_of_file(path):
    """The family that a file is of by its name, as parts, in tests/: designs/matmul/... or operations/test_gemv.py; or None."""
    if path[0] not in ACROSS or len(path) < 2:
        return None
    found = re.match(rf"({'|'.join(sorted(OPS, key=len, reverse=True))})(?![a-z0-9])", path[1].removeprefix("test_"))
    return found and family(found[1])


def expected(name):
    return EXPECTED.get(parts(name)[0], 60)
