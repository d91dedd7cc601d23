"""conv2d, winograd: the configs and launches of winograd.cuh."""

import torch

from tritonkernels.choice.work import product as work_of_product
from tritonkernels.cook_toom import transform
from tritonkernels.design import Design
from tritonkernels.operations.conv2d.points import OUTPUTS, images_at_once, product_at_points, refuses_winograd
from tritonkernels.operations.conv2d.work import of_winograd

from ..launch import CudaLaunch, Source, ceil_div, config_of
from .parts.operands import TYPES, arguments, sources

THREADS = 128
TRANSFORMS = [f"conv2d::winograd_{name}<{{T}}, {m}, {THREADS}>" for m in OUTPUTS for name in ("filters", "inputs", "outputs")]
# (BM, BN, TM, TN). The last two are for few tiles of outputs, which are the N dimension in NCHW, M in channels_last.
TILES = {
    torch.float32: (
        (64, 64, 8, 8),
        (64, 128, 8, 8),
        (128, 64, 8, 8),
        (128, 128, 8, 8),
        (64, 32, 8, 4),
        (32, 64, 4, 8),
    ),
    torch.float64: ((64, 64, 4, 4),),
}


def product_kernel(sums, tile):
    bm, bn, tm, tn = tile
    return f"conv2d::winograd_product<{TYPES[sums]}, {bm}, {bn}, 8, {tm}, {tn}, 3>"


TRANSFORM_SOURCES = sources("conv2d/winograd.cuh", TRANSFORMS)
PRODUCT_SOURCES = {
    sums: Source("conv2d/parts/winograd_product.cuh", tuple(product_kernel(sums, tile) for tile in tiles))
    for sums, tiles in TILES.items()
}


def product_and_pitch(problem, outputs, images):
    """The batched product, a matrix per point, and the pitch of B and of its result: a multiple of 128 bits."""
    product = product_at_points(problem, outputs, images)
    return product, ceil_div(product.n, 4) * 4


def refuses(problem, target):
    """Problems without tiles, and those with too many elements per point: the kernels count these in 32 bits."""
    product, pitch = product_and_pitch(problem, 2, 1)
    elements = problem.groups * max(product.m * pitch, product.k * product.m, product.k * pitch)
    if elements >= 2**32:
        return f"it needs {elements} elements per point and image; the most is 2^32"
    return refuses_winograd(problem, target)


def configs(problem, target):
    """Both variants with each tile."""
    for outputs in OUTPUTS:
        for tile in TILES[product_at_points(problem, outputs, 1).dtype]:
            yield config_of(OUTPUTS=outputs, **dict(zip(("BM", "BN", "TM", "TN"), tile)))


def launches(problem, config, input, weight, bias, out):
    outputs, inside = config["OUTPUTS"], problem.channels_last
    images = images_at_once(problem, outputs)
    product, pitch = product_and_pitch(problem, outputs, images)
    batch, rows, depth = product.batch, product.m, product.k
    like = {"dtype": product.dtype, "device": out.device}
    a, b, products = (torch.empty(batch, *shape, **like) for shape in ((rows, depth), (depth, pitch), (rows, pitch)))
    u, v = (b, a) if inside else (a, b)
    points, tiles = (outputs + 2) ** 2, rows if inside else pitch
    source = TRANSFORM_SOURCES[problem.dtype]

    def over(elements, name, *given):
        kernel = f"conv2d::winograd_{name}<{TYPES[problem.dtype]}, {outputs}, {THREADS}>"
        return CudaLaunch(source, kernel, (ceil_div(elements.numel() // points, THREADS),), (THREADS, 1, 1), given)

    tile = bm, bn, tm, tn = tuple(config[name] for name in ("BM", "BN", "TM", "TN"))
    blocks = batch * ceil_div(rows, bm) * ceil_div(pitch, bn)
    for first in range(0, problem.n, images):
        part = slice(first, first + images)
        *_, sizes, strides = arguments(problem, input[part], weight, bias, out[part])
        sizes = (min(images, problem.n - first), *sizes[1:])
        if first == 0 and u.numel():
            yield over(u, "filters", weight, u, sizes, strides, pitch, inside)
        if v.numel():
            yield over(v, "inputs", input[part], v, sizes, strides, pitch, tiles, inside)
        kernel = product_kernel(product.dtype, tile)
        yield CudaLaunch(
            PRODUCT_SOURCES[product.dtype],
            kernel,
            grid=(blocks,),
            block=(bm * bn // (tm * tn), 1, 1),
            arguments=(a, b, products, rows, pitch, depth),
            part=(kernel,),
        )
        yield over(products, "outputs", products, bias, out[part], sizes, strides, pitch, tiles, inside)


def work(problem, config, target):
    outputs, images = config["OUTPUTS"], images_at_once(problem, config["OUTPUTS"])
    product, pitch = product_and_pitch(problem, outputs, images)
    tile = {"BM": config["BM"], "BN": config["BN"], "BK": 8, "stages": 3}
    tile["threads"] = config["BM"] * config["BN"] // (config["TM"] * config["TN"])
    of_product = (work_of_product(product, tile, target, batch=product.batch),)
    return of_winograd(problem, outputs, images, (product.m, pitch, product.k), of_product, THREADS)


DESIGN = Design(
    refuses=refuses,
    configs=configs,
    launches=launches,
    work=work,
    transform=lambda numbers: transform(numbers["OUTPUTS"]),
)
