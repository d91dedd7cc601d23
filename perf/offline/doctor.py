"""python -m perf doctor: what both packages run on here, and with which tools they would build."""

import cuda_reference
import tritonkernels


def add_arguments(parser):
    """None."""


def main(options, parser):
    print(tritonkernels.doctor(), cuda_reference.doctor(), sep="\n\n")
    return 0
