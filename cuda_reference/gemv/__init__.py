"""GEMV in CUDA C++."""

from tritonkernels.design import Design, takes_everything
from tritonkernels.gemv import prepare

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div


def gemv(a, x, y=None, *, alpha=1.0, beta=0.0, out=None, design=None, config=None):
    """tritonkernels.gemv, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    return LIBRARY.run(prepare(a, x, y, alpha=alpha, beta=beta, out=out), design, config)


def _warp_per_row():
    space = [{"ROWS": 4}, {"ROWS": 8}]  # the seed's blocks are (32, 4)
    template = "gemv::warp_per_row<{ROWS}>"
    source = Source("gemv/warp_per_row.cuh", tuple(template.format(**config) for config in space))

    def launches(problem, config, a, x, y, out):
        rows = config["ROWS"]
        strides = (*a.stride(), x.stride(0), 0 if y is None else y.stride(0), out.stride(0))
        arguments = (a, x, y, out, problem.m, problem.n, problem.alpha, problem.beta, strides)
        yield CudaLaunch(source, template.format(**config), (ceil_div(problem.m, rows),), (32, rows, 1), arguments)

    return Design(
        name="warp_per_row",
        summary="the lanes of a warp walk a row together, reduced by shuffles",
        mirrors="gemv seed: N = 32",
        refuses=takes_everything,
        configs=lambda problem, target: space,
        launches=launches,
    )


DESIGNS = (_warp_per_row(),)
