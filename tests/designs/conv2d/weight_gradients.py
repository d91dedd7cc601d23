"""Calls of conv2d_weight that its designs are tested by, and ways to run them."""

import dataclasses

import torch

from cuda_reference.launch import LIBRARY as CUDA
from tests import gluon_threads
from tests.harness import channels_last, prepare, random, run_checked
from tritonkernels.numerics import judge

KINDS = {
    "fp16": (torch.float16, {}),
    "bf16": (torch.bfloat16, {}),
    "tf32": (torch.float32, {"precision": "tf32"}),
    "fp32": (torch.float32, {}),
}


def operands(kind, case, layout=channels_last, device="cpu"):
    """((input, weight_size, grad_output), options) of a case (image, weight, options of the convolution)."""
    (image, weight, options), (dtype, precision) = case, KINDS[kind]
    shape = torch.nn.functional.conv2d(torch.empty(image, device="meta"), torch.empty(weight, device="meta"), **options).shape
    x, grad = (layout(random(*of, dtype=dtype, device=device)) for of in (image, shape))
    return (x, weight, grad), options | precision


def check_tiles(design, args, options, *tiles):
    """In the emulation with five blocks, or as many as a tile names."""
    for tile in tiles:
        config = tile if args[0].is_cuda else {"BLOCKS": 5} | tile
        run_checked(CUDA, "conv2d_weight", design, *args, config=config, **options)


def check_by_threads(design, kernel, args, options, config, seed=0, wide=False):
    """Runs the launches: that of the kernel, which is in Gluon, by threads, the others in the interpreter."""
    call = prepare("conv2d_weight", *args, **options)
    call.result.fill_(float("nan"))
    for launch in design.launches(dataclasses.replace(call.problem, wide=wide), config, *call.parts[0]):
        if launch.name == kernel:
            gluon_threads.run(launch, seed)
        else:
            launch.run()
    verdict = judge(call.problem, call.result, *args, **options)
    assert verdict.ok, f"{call.problem}: error {verdict.error:.3g} above the bound {verdict.bound:.3g}"
