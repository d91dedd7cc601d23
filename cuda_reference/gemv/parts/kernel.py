"""How gemv's kernels are instantiated, and the arguments that they take."""

from dataclasses import dataclass

import torch

from tritonkernels.gemv.parts.regime import streams

from ...launch import CudaLaunch, Source

TYPES = {torch.float32: "float", torch.float16: "__half", torch.bfloat16: "__nv_bfloat16", torch.int8: "int8_t"}


@dataclass(frozen=True)
class Kernel:
    """gemv::name<A, X, numbers> of name.cuh: `numbers`, as "{ROWS}, {UNROLL}", have their values in `space`, by instance."""

    name: str
    numbers: str
    space: tuple

    def launch(self, problem, config, grid, threads, *arguments):
        """A launch of the config's instance; all instances for the problem's types are built together."""
        types = f"{TYPES[problem.a_dtype]}, {TYPES[problem.dtype]}"
        template = f"gemv::{self.name}<{types}, {self.numbers}>"
        source = Source(f"gemv/{self.name}.cuh", tuple(template.format(**numbers) for numbers in self.space))
        return CudaLaunch(source, template.format(**config), grid, (threads, 1, 1), arguments)


def streaming(space, problem, target):
    """The configs of a kernel with a parameter for whether A is the first to leave L2 (`regime.streams`)."""
    numbers = {"STREAMS": streams(problem, target)}
    return [config | numbers for config in space]


def row_arguments(problem, a, x, y, scale, out):
    """The arguments of a kernel that numbers the rows of the batch through."""
    _, m, n = a.shape
    return a, x, y, scale, out, rows_of(a), m, n, problem.alpha, problem.beta, strides(a, x, y, scale, out)


def rows_of(a):
    """The rows of all matrices of the batch."""
    return a.shape[0] * a.shape[1]


def strides(a, x, y, scale, out):
    """The members of Strides (row.cuh), 0 where a tensor is absent."""
    of_y = (0, 0) if y is None else y.stride()
    of_scale = (0,) if scale is None else scale.stride()
    return *a.stride(), *x.stride(), *of_y, *of_scale, *out.stride()
