"""The suites of the comparison: a suite is a tuple of Cases (cases.py).

`smoke` is small and ragged and reaches every operation, precision and layout class; `seeds` has the sizes that the seeds
measured, and smaller ones in place of those that would take minutes without a GPU; `ladder` climbs the FP32 GEMM designs on
squares, on a size whose rows are unaligned, and on two with few tiles; `hopper` climbs those of bf16 on squares, x W^T as in a
linear layer; `precision` multiplies fp32 squares in every mode.

Tensor-core products: `square`; `fp8`, squares of e4m3 without scales, with one each and with one a row, their sums in fp32 and
"fast"; `skinny`, with few rows or columns or with much K; `llm`, Llama-3-8B's projections x W^T; `unaligned`, with sizes whose
rows are not aligned to 16 bytes.

Convolutions: `image`, the seed's filters of few channels on whole images, and Gaussian blurs and Sobel filters of each colour
on its own; `grouped`, the depthwise and grouped layers of ResNeXt-50, MobileNetV2 and EfficientNet-B0; both in NCHW and in
channels_last. `resnet50`, its 23 distinct layers: in fp16 and channels_last for 32 images and for one, in fp32 and NCHW for
one.

`gemv` goes through sizes of N, from rows of two vectors to a single row, then transposed, in fp16 at the projections of `llm`,
and in a batch. A single call is as short as the events around it, so each case is timed as several calls in a row: with
operands that together exceed L2 ("rotating") and, where they fit, with operands that stay in L2 ("resident"). All other cases
are single calls after a flush of L2.
"""

import math
from dataclasses import replace

import torch

from .cases import LAYOUTS, Operand, conv2d, gemm, gemv, layer, matmul, scales

HALVES, E4M3 = (torch.float16, torch.bfloat16), torch.float8_e4m3fn
PROJECTIONS = (
    (4096, 4096),
    (1024, 4096),
    (14336, 4096),
    (128256, 4096),
    (4096, 14336),
)  # (N, K): q o, k v, gate up, head, down


IMAGES = ((768, 512), (1024, 768), (1920, 1080), (1920, 2400))  # the convolution seed's
DEPTHWISE = (
    *((32, 112, 3, 1), (96, 112, 3, 2), (144, 56, 3, 1), (576, 14, 3, 1), (960, 7, 3, 1)),  # MobileNetV2
    *((240, 28, 5, 1), (672, 14, 5, 2), (1152, 7, 5, 1)),  # EfficientNet-B0
)  # (channels, size of the image, taps, stride)
RESNEXT = ((128, 56, 1), (256, 56, 2), (256, 28, 1), (512, 14, 1), (1024, 7, 1))  # channels in 32 groups, size, stride
RESNET = (
    (3, 224, 64, 7, 2),
    *((64, 56, 64, 1, 1), (64, 56, 64, 3, 1), (64, 56, 256, 1, 1), (256, 56, 64, 1, 1)),
    *((256, 56, 128, 1, 1), (128, 56, 128, 3, 2), (128, 28, 512, 1, 1), (256, 56, 512, 1, 2), (512, 28, 128, 1, 1)),
    (128, 28, 128, 3, 1),
    *((512, 28, 256, 1, 1), (256, 28, 256, 3, 2), (256, 14, 1024, 1, 1), (512, 28, 1024, 1, 2), (1024, 14, 256, 1, 1)),
    (256, 14, 256, 3, 1),
    *((1024, 14, 512, 1, 1), (512, 14, 512, 3, 2), (512, 7, 2048, 1, 1), (1024, 14, 2048, 1, 2), (2048, 7, 512, 1, 1)),
    (512, 7, 512, 3, 1),
)  # torchvision's ResNet-50, v1.5: (channels, size of the image, output channels, taps, stride)

MODES = ("ieee", "fp32", "tf32", "tf32x3", "fp16x3", "bf16x6", "bf16x9")  # of fp32


def in_mode(mode, case):
    return replace(case, name=f"{case.name} {mode}")


def in_cache(case):
    """The case timed as calls in a row: past L2 and, where it easily fits, within L2."""
    yield replace(case, name=f"{case.name}, rotating", cache="rotating")
    if math.prod(case.operands[0].shape) * case.operands[0].dtype.itemsize <= 2**24:
        yield replace(case, name=f"{case.name}, resident", cache="resident", gpu_only=True)


GEMV = (
    *(gemv(16384, n, gpu_only=n > 128) for n in (8, 16, 32, 64, 128, 256, 512, 1000, 1024, 4096)),
    *(gemv(size, size, gpu_only=True) for size in (1024, 2048, 4096, 8192, 16384)),
    gemv(1, 10**6),
    gemv(64, 65536, gpu_only=True),
    *(gemv(m, n, a="col", gpu_only=m * n > 2**21) for m, n in ((16384, 16), (16384, 128), (16384, 1024), (4096, 4096))),
    *(gemv(m, n, a="col", gpu_only=True) for m, n in ((16384, 16384), (10**6, 4), (64, 65536))),
    *(gemv(m, n, dtype=torch.float16, gpu_only=True) for m, n in PROJECTIONS),
    gemv(4096, 14336, a="col", dtype=torch.float16, gpu_only=True),
    gemv(128, 1024, dtype=torch.float16, batch=(32,), gpu_only=True),
)


SUITES = {
    "smoke": (
        gemm(65, 47, 33, alpha=1.5, beta=0.5),
        gemm(128, 64, 96),
        gemm(33, 130, 70, a="col", b="pitched", alpha=-2.0, beta=1.0),
        gemm(70, 34, 131, a="pitched", b="col"),
        gemm(65, 47, 33, dtype=torch.float64, alpha=0.1, beta=0.5),
        gemv(131, 16, alpha=1.5, beta=0.5),
        gemv(67, 45, dtype=torch.float64, alpha=0.1, beta=0.5),
        gemv(77, 1030),
        gemv(130, 129, a="col"),
        conv2d((2, 3, 17, 21), (5, 3, 3, 3), bias=True, padding=1),
        conv2d((1, 4, 23, 19), (6, 2, 5, 4), stride=(2, 1), dilation=(1, 2), groups=2),
        conv2d((2, 6, 12, 13), (7, 6, 3, 5), layout="channels_last", padding="same"),
        matmul(65, 47, 33, torch.float16),
        matmul(64, 32, 48, torch.float16, out_dtype=torch.float32),
        matmul(33, 70, 65, torch.float16, a="col", b="col", out_dtype=torch.float32),
        matmul(31, 18, 45, torch.float16, batch=(3,)),
        matmul(65, 47, 131, torch.bfloat16, b="pitched"),
        matmul(65, 40, 48, torch.int8),
        matmul(65, 47, 33, precision="ieee"),
        matmul(65, 47, 131, precision="tf32"),
        matmul(65, 47, 33, torch.float64),
        matmul(65, 47, 33, torch.float8_e4m3fn),
        matmul(64, 32, 48, torch.float8_e5m2, b="col", out_dtype=torch.bfloat16),
        matmul(33, 64, 160, E4M3, b="col", out_dtype=torch.bfloat16, other=torch.float8_e5m2, named=scales(33, 64)),
        matmul(64, 48, 160, E4M3, b="col", accumulate="fast", named=scales()),
        matmul(65, 47, 33, torch.uint8),
        *(matmul(33, 18, 35, torch.uint8, precision=packed) for packed in ("int4", "uint4", "b1_xor", "b1_and")),
        matmul(65, 47, 33, torch.float16, accumulate="fp16"),
        matmul(
            65,
            47,
            40,
            torch.float16,
            alpha=1.5,
            beta=0.5,
            activation="gelu",
            named={"c": Operand((65, 47), torch.float16), "bias": Operand((47,), torch.float16)},
        ),
    ),
    "seeds": (
        gemm(512, 512, 512, alpha=1.5, beta=0.5),  # the twin of the next
        gemm(1024, 1024, 1024, alpha=1.5, beta=0.5, gpu_only=True),
        gemm(4096, 4096, 4096, alpha=1.5, beta=0.5, gpu_only=True),
        gemv(16384, 16),
        gemv(16384, 32),
        gemv(16384, 128),
        conv2d((1, 6, 96, 128), (6, 6, 6, 6)),  # the twin of the next
        conv2d((1, 6, 768, 512), (6, 6, 6, 6), gpu_only=True),
        *(conv2d((1, 3, *size), (3, 3, taps, taps), gpu_only=True) for taps in (3, 6) for size in IMAGES),
        matmul(1024, 128, 256, torch.float16, out_dtype=torch.float32),
        matmul(1024, 128, 256, torch.float16),
        matmul(1024, 128, 256, precision="tf32"),
    ),
    "ladder": (
        gemm(256, 256, 256),
        *(gemm(size, size, size, gpu_only=True) for size in (1024, 2048, 4096, 8192, 4097)),
        gemm(1792, 1792, 4096, gpu_only=True),
        gemm(256, 256, 16384, gpu_only=True),
    ),
    "hopper": (
        matmul(256, 128, 64, torch.bfloat16, b="col"),
        *(matmul(size, size, size, torch.bfloat16, b="col", gpu_only=True) for size in (2048, 4096, 8192)),
    ),
    "precision": (
        *(in_mode(mode, matmul(128, 128, 128, precision=mode)) for mode in MODES),
        *(in_mode(mode, matmul(n, n, n, precision=mode, gpu_only=True)) for n in (1024, 2048, 4096, 8192) for mode in MODES),
    ),
    "gemv": tuple(timed for case in GEMV for timed in in_cache(case)),
    "image": (
        conv2d((1, 3, 96, 64), (3, 3, 3, 3)),
        *(
            conv2d((1, channels, *size), (channels, channels, taps, taps), layout, gpu_only=True)
            for channels, taps in ((3, 3), (3, 6), (6, 6))
            for size in IMAGES
            for layout in LAYOUTS
        ),
        conv2d((1, 16, 768, 512), (16, 16, 3, 3), gpu_only=True, padding=1),
        conv2d((1, 6, 768, 512), (6, 6, 6, 6), dtype=torch.float16, gpu_only=True),
        *(
            conv2d((1, 3, 1080, 1920), (filters, 1, taps, taps), layout, gpu_only=True, padding=taps // 2, groups=3)
            for filters, taps in ((3, 5), (3, 9), (3, 15), (3, 21), (3, 31), (6, 3))  # Gaussians, and Sobel's two directions
            for layout in LAYOUTS
        ),
    ),
    "grouped": (
        conv2d((1, 8, 20, 24), (8, 1, 3, 3), padding=1, groups=8),
        conv2d((1, 8, 20, 24), (16, 4, 3, 3), padding=1, groups=2),
        *(
            layer(32, channels, size, channels, taps, stride, layout, groups=channels)
            for channels, size, taps, stride in DEPTHWISE
            for layout in LAYOUTS
        ),
        *(
            layer(32, channels, size, channels, 3, stride, layout, groups=32)
            for channels, size, stride in RESNEXT
            for layout in LAYOUTS
        ),
    ),
    "resnet50": (
        layer(1, 16, 9, 32, 3, 2, "channels_last", torch.float16, gpu_only=False),
        *(layer(images, *sizes, "channels_last", torch.float16) for images in (32, 1) for sizes in RESNET),
        *(layer(1, *sizes) for sizes in RESNET),
    ),
    "square": (
        *(matmul(128, 128, 128, dtype) for dtype in HALVES),
        *(matmul(n, n, n, dtype, gpu_only=True) for n in (256, 512, 1024, 2048, 4096, 8192) for dtype in HALVES),
    ),
    "fp8": (
        matmul(128, 128, 256, E4M3, b="col", out_dtype=torch.bfloat16),
        *(
            matmul(n, n, n, E4M3, b="col", out_dtype=torch.bfloat16, gpu_only=True, named=named, **sums)
            for n in (1024, 2048, 4096, 8192)
            for named in ({}, scales(), scales(n, n))
            for sums in ({}, {"accumulate": "fast"})
        ),
    ),
    "skinny": (
        matmul(1, 64, 1024, torch.float16),
        matmul(64, 1, 1024, torch.float16),
        *(matmul(m, 4096, k, torch.float16, gpu_only=True) for m in (1, 8, 16, 64) for k in (1024, 4096, 16384)),
        *(matmul(4096, n, k, torch.float16, gpu_only=True) for n in (1, 8, 16, 64) for k in (1024, 4096, 16384)),
        matmul(256, 256, 65536, torch.float16, gpu_only=True),
    ),
    "llm": (
        matmul(16, 96, 128, torch.bfloat16, b="col"),
        *(matmul(m, n, k, torch.bfloat16, b="col", gpu_only=True) for n, k in PROJECTIONS for m in (1, 16, 256, 4096)),
    ),
    "unaligned": (
        matmul(64, 64, 63, torch.float16),
        matmul(64, 63, 64, torch.float16),
        *(matmul(4096, 4096, k, torch.float16, gpu_only=True) for k in (4095, 4097, 1000, 333)),
        *(matmul(4096, n, 4096, torch.float16, gpu_only=True) for n in (4095, 4097, 1000, 333)),
        *(matmul(n, n, n, torch.float16, gpu_only=True) for n in (4095, 4097)),
    ),
}
