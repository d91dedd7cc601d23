"""Calls on meta tensors, so of any size, that together reach every path of the kernels."""

import functools
import importlib

import torch


def representative_calls(op):
    """Calls that together reach every path of the operation's kernels."""

    def empty(*shape, dtype=torch.float32):
        return torch.empty(shape, dtype=dtype, device="meta")

    prepare = importlib.import_module(f"tritonkernels.{op}").prepare
    wide = 40_000  # squared, 2^30.6 elements: with the margin of a tile it needs 64-bit offsets
    if op == "gemm":
        yield prepare(empty(4096, 4096), empty(4096, 4096), empty(4096, 4096), alpha=1.5, beta=0.5)
        yield prepare(empty(wide, 2 * wide).t(), empty(wide, 333))
    elif op == "gemv":
        for n in (16, 128, 16384):
            yield prepare(empty(16384, n), empty(n), empty(16384), beta=0.5)
        yield prepare(empty(2 * wide, wide + 1), empty(wide + 1))
        half, scale = torch.float16, empty(4096)
        yield prepare(empty(8, 4096, 4096, dtype=half).mT, empty(8, 4096, dtype=half))
        yield prepare(empty(4096, 4096, dtype=torch.int8), empty(4096, dtype=torch.bfloat16), scale=scale)
    elif op == "conv2d":
        yield prepare(empty(1, 6, 768, 512), empty(6, 6, 6, 6))
        yield prepare(empty(32, 64, 56, 56), empty(64, 64, 3, 3), empty(64), padding=1)
        yield prepare(empty(1024, 64, 256, 256), empty(64, 4, 5, 3), padding=(2, 1), stride=2, dilation=3, groups=16)
        yield prepare(empty(1024, 64, 256, 256).to(memory_format=torch.channels_last), empty(64, 4, 3, 3), groups=16)
        image = empty(32, 128, 28, 28, dtype=torch.float16).to(memory_format=torch.channels_last)
        for taps in (3, 1):
            yield prepare(image, empty(128, 128, taps, taps, dtype=torch.float16), padding=taps // 2)
    elif op == "conv2d_input":
        yield prepare((32, 64, 56, 56), empty(64, 64, 3, 3), empty(32, 64, 28, 28), padding=1, stride=2)
    elif op == "conv2d_weight":
        yield prepare(empty(1, 3, 1080, 1920), (3, 3, 3, 3), empty(1, 3, 1080, 1920), padding=1)
        yield prepare(empty(32, 64, 56, 56), (64, 64, 3, 3), empty(32, 64, 56, 56), padding=1)
        yield prepare(empty(32, 96, 56, 56), (96, 1, 3, 3), empty(32, 96, 28, 28), padding=1, stride=2, groups=96)
        yield prepare(
            empty(1024, 64, 256, 256), (64, 4, 5, 3), empty(1024, 64, 124, 126), padding=(2, 1), stride=2, dilation=3, groups=16
        )
    elif op == "conv2d_bias":
        yield prepare(empty(32, 64, 56, 56))
        yield prepare(empty(1024, 64, 256, 256).contiguous(memory_format=torch.channels_last))
    else:
        for dtype in (torch.float16, torch.float32, torch.int8):
            yield prepare(empty(4096, 4096, dtype=dtype), empty(4096, 4096, dtype=dtype))
        for precision in ("tf32", "fp16x3", "tf32x3", "bf16x6", "bf16x9"):
            yield prepare(empty(4096, 4096), empty(4096, 4096), precision=precision)
        yield prepare(empty(wide, 2 * wide, dtype=torch.float16).t(), empty(wide, 333, dtype=torch.float16))
        yield prepare(empty(wide, 2 * wide).t(), empty(wide, 333), precision="fp32")


def unusual_calls(op):
    """Calls of other types, and with matmul's epilogue: their kernels differ from the above inside or after the loop."""

    def empty(*shape, dtype=torch.float16):
        return torch.empty(shape, dtype=dtype, device="meta")

    prepare = importlib.import_module(f"tritonkernels.{op}").prepare
    doubles = functools.partial(empty, dtype=torch.float64)
    if op == "gemm":
        yield prepare(doubles(4096, 4096), doubles(4096, 4096), doubles(4096, 4096), alpha=1.5, beta=0.5)
    if op == "gemv":
        for n in (16, 16384):
            yield prepare(doubles(16384, n), doubles(n), doubles(16384), beta=0.5)
        yield prepare(doubles(4096, 4096).t(), doubles(4096))
    if op == "conv2d":
        for dtype in (torch.float16, torch.float64):
            yield prepare(empty(1, 6, 768, 512, dtype=dtype), empty(6, 6, 6, 6, dtype=dtype), padding=1)
            yield prepare(empty(8, 64, 56, 56, dtype=dtype), empty(64, 64, 3, 3, dtype=dtype), empty(64, dtype=dtype))
        stem = empty(32, 3, 224, 224).to(memory_format=torch.channels_last)
        yield prepare(stem, empty(64, 3, 7, 7), padding=3, stride=2)
        yield prepare(empty(1, 512, 7, 7, dtype=torch.bfloat16), empty(512, 512, 3, 3, dtype=torch.bfloat16), padding=1)
        yield prepare(empty(32, 128, 28, 28, dtype=torch.float32), empty(128, 128, 3, 3, dtype=torch.float32), precision="tf32")
        channels = empty(32, 96, 56, 56, dtype=torch.float32).to(memory_format=torch.channels_last)
        yield prepare(channels, empty(96, 1, 3, 3, dtype=torch.float32), padding=1, groups=96)
        residual = empty(32, 96, 56, 56).to(memory_format=torch.channels_last)
        for groups in (1, 96):
            filters = empty(96, 96 // groups, 3, 3)
            yield prepare(residual, filters, empty(96), padding=1, groups=groups, residual=residual, activation="gelu")
    if op == "conv2d_weight":
        for dtype in (torch.float16, torch.bfloat16, torch.float64):
            for k in (3, 64):
                yield prepare(empty(8, k, 56, 56, dtype=dtype), (k, k, 3, 3), empty(8, k, 56, 56, dtype=dtype), padding=1)
            images = empty(8, 64, 56, 56, dtype=dtype).contiguous(memory_format=torch.channels_last)
            yield prepare(images, (64, 64, 3, 3), images, padding=1)
        images = empty(8, 64, 56, 56, dtype=torch.float32)
        yield prepare(images, (64, 64, 3, 3), images, padding=1, precision="tf32")
    if op != "matmul":
        return
    for dtype in (torch.bfloat16, torch.float64, torch.float8_e4m3fn, torch.float8_e5m2):
        yield prepare(empty(4096, 4096, dtype=dtype), empty(4096, 4096, dtype=dtype))
    c = empty(4096, 4096)
    for addend in (c, c.t(), c.float()):  # one addend alone, as shared memory has it with the largest tiles
        yield prepare(empty(4096, 4096), empty(4096, 4096), beta=0.5, c=addend, out_dtype=addend.dtype)
    e4m3, e5m2 = (empty(4096, 4096, dtype=dtype) for dtype in (torch.float8_e4m3fn, torch.float8_e5m2))
    rows = {"scale_a": empty(4096, 1, dtype=torch.float32), "scale_b": empty(1, 4096, dtype=torch.float32)}
    for accumulate in ("fp32", "fast"):
        yield prepare(e4m3, e5m2.mT, accumulate=accumulate, out_dtype=torch.bfloat16, activation="gelu", **rows)
    for precision in ("uint8", "int4", "b1_xor"):
        bytes_ = empty(4096, 4096, dtype=torch.uint8)
        yield prepare(bytes_, bytes_, precision=precision)
    yield prepare(empty(4096, 4096), empty(4096, 4096), accumulate="fp16")
    c, bias = empty(4096, 4096), empty(4096)
    yield prepare(empty(4096, 4096), empty(4096, 4096), alpha=1.5, beta=0.5, c=c, bias=bias, activation="gelu")
    a, b, c, bias = (empty(*shape, dtype=torch.float32) for shape in ((4096, 4096), (4096, 4096), (4096, 4096), (4096,)))
    for precision in ("fp16x3", "fp32", "tf32x3", "bf16x6"):
        yield prepare(a, b, alpha=1.5, beta=0.5, c=c, bias=bias, activation="gelu", precision=precision)
