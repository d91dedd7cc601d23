"""Tensor-core matrix product in CUDA C++."""

import torch

from tritonkernels.design import Design
from tritonkernels.matmul import prepare

from ..launch import LIBRARY, CudaLaunch, Source, ceil_div


def matmul(
    a,
    b,
    *,
    precision=None,
    out_dtype=None,
    accumulate=None,
    alpha=1.0,
    beta=0.0,
    c=None,
    bias=None,
    activation=None,
    out=None,
    design=None,
    config=None,
):
    """tritonkernels.matmul, computed by the CUDA designs: arguments, result, error bound and errors are documented there."""
    call = prepare(
        a,
        b,
        precision=precision,
        out_dtype=out_dtype,
        accumulate=accumulate,
        alpha=alpha,
        beta=beta,
        c=c,
        bias=bias,
        activation=activation,
        out=out,
    )
    return LIBRARY.run(call, design, config)


def _wmma():
    space = [{"WM": 16, "WN": 16}, {"WM": 32, "WN": 8}, {"WM": 8, "WN": 32}]
    template = "matmul::wmma<{OUT}, {WM}, {WN}>"
    out_types = {torch.float16: "__half", torch.float32: "float"}
    instances = tuple(template.format(**config, OUT=t) for config in space for t in out_types.values())
    source = Source("matmul/wmma.cuh", instances)

    def refuses(problem, target):
        if problem.precision != "fp16":
            return f"it multiplies float16 only, not {problem.precision}"
        if problem.accumulate != "fp32":
            return f"it adds up in fp32, not in {problem.accumulate}"
        if problem.fused:
            return f"it fuses nothing with the product, not {', '.join(problem.fused)}"
        if target.is_gpu and target.arch < 70:
            return f"tensor cores begin with sm_70, and {target.name} is sm_{target.arch}"
        return None

    def launches(problem, config, a, b, c, bias, out):
        tiles = ceil_div(problem.m, config["WM"]) * ceil_div(problem.n, config["WN"])
        arguments = (a, b, out, problem.m, problem.n, problem.k, (*a.stride(), *b.stride(), *out.stride()))
        expression = template.format(**config, OUT=out_types[problem.out_dtype])
        yield CudaLaunch(source, expression, (a.shape[0] * tiles,), (32, 1, 1), arguments)

    return Design(
        name="wmma",
        summary="a warp per 16 x 16 tile, half in, float accumulate, through nvcuda::wmma",
        mirrors="tensor-core seed: WMMA",
        refuses=refuses,
        configs=lambda problem, target: space,
        launches=launches,
    )


DESIGNS = (_wmma(),)
