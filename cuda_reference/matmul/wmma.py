"""The designs that go through nvcuda::wmma: the table of its 20 combinations of types and shapes, and how they are launched."""

import itertools
from dataclasses import dataclass

import torch

from tritonkernels.design import Design
from tritonkernels.problem import PACKED

from ..launch import CudaLaunch, Source, ceil_div

WIDE = ((16, 16), (32, 8), (8, 32))
LAYOUTS = {"row": "row_major", "col": "col_major"}
TYPES = {
    torch.float16: "__half",
    torch.bfloat16: "__nv_bfloat16",
    torch.float32: "float",
    torch.float64: "double",
    torch.int32: "int",
}
SUMS = {"fp16": "__half", "fp32": "float", "fp64": "double", "int32": "int"}
ACTIVATIONS = (None, "relu", "gelu", "silu")  # numbered as in epilogue.cuh


@dataclass(frozen=True)
class Operand:
    """What WMMA multiplies in a precision."""

    name: str  # in operands.cuh
    arch: int  # the first that can
    shapes: tuple  # (WM, WN), the default first
    sums: tuple  # keys of SUMS
    results: tuple  # keys of TYPES

    @property
    def instances(self):
        """(type of the sums, type of the result, layout of A, layout of B) as C++ has them."""
        layouts = [LAYOUTS.values()] * 2 if self.name not in PACKED_OPERANDS else [["row_major"], ["col_major"]]
        for sums, result, a, b in itertools.product(self.sums, self.results, *layouts):
            yield SUMS[sums], TYPES[result], f"matmul::{a}", f"matmul::{b}"


FLOATS, INTS = ("fp32",), (("int32",), (torch.int32,))
OPERANDS = {
    "fp16": Operand("Half", 70, WIDE, ("fp32", "fp16"), (torch.float16, torch.float32)),
    "bf16": Operand("BFloat16", 80, WIDE, FLOATS, (torch.bfloat16, torch.float32)),
    "tf32": Operand("Tf32", 80, ((16, 16),), FLOATS, (torch.float32,)),
    "fp64": Operand("Double", 80, ((8, 8),), ("fp64",), (torch.float64,)),
    "int8": Operand("Int8", 72, WIDE, *INTS),
    "uint8": Operand("Uint8", 72, WIDE, *INTS),
    "int4": Operand("Int4", 75, ((8, 8),), *INTS),
    "uint4": Operand("Uint4", 75, ((8, 8),), *INTS),
    "b1_xor": Operand("BitsXor", 75, ((8, 8),), *INTS),
    "b1_and": Operand("BitsAnd", 80, ((8, 8),), *INTS),
}
PACKED_OPERANDS = {OPERANDS[precision].name for precision in PACKED}


def refusal(precisions, problem, target):
    """Why a design with these precisions does not take the problem, or None."""
    if problem.precision not in precisions:
        return f"it has no {problem.precision}"
    return target.lacks(problem.precision, OPERANDS[problem.precision].arch)


def instance(problem):
    """The one of its operand's instances that a problem needs."""
    layouts = (problem.a_layout, problem.b_layout) if problem.precision not in PACKED else ("row", "col")
    layouts = (f"matmul::{LAYOUTS.get(layout, 'row_major')}" for layout in layouts)
    return SUMS[problem.accumulate], TYPES[problem.out_dtype], *layouts


def arguments(problem, a, b, c, bias, out):
    """Of every kernel with the Epilogue."""
    scalars = problem.alpha, problem.beta
    if problem.accumulate == "int32":
        scalars = (int(scalar) % 2**32 for scalar in scalars)
    strides = (
        *a.stride(),
        *b.stride(),
        *((0, 0, 0) if c is None else c.stride()),
        *out.stride(),
        *((0,) if bias is None else bias.stride()),
    )
    sizes = problem.m, problem.n, problem.k
    return a, b, c, bias, out, *sizes, *scalars, ACTIVATIONS.index(problem.activation), strides


def a_warp_per_tile():
    def spaces(precision):
        return [{"WM": m, "WN": n} for m, n in OPERANDS[precision].shapes]

    def expression(precision, config, instance):
        sums, result, a, b = instance
        return f"matmul::wmma<matmul::{OPERANDS[precision].name}, {sums}, {config['WM']}, {config['WN']}, {a}, {b}, {result}>"

    sources = {
        precision: Source(
            "matmul/wmma.cuh",
            tuple(expression(precision, *one) for one in itertools.product(spaces(precision), operand.instances)),
        )
        for precision, operand in OPERANDS.items()
    }

    def launches(problem, config, a, b, c, bias, out):
        kernel = expression(problem.precision, config, instance(problem))
        grid = (a.shape[0] * _tiles(problem, config["WM"], config["WN"]),)
        yield CudaLaunch(sources[problem.precision], kernel, grid, (32, 1, 1), arguments(problem, a, b, c, bias, out))

    return Design(
        name="wmma",
        summary="a warp per WMMA tile, in all 20 combinations of types and shapes that nvcuda::wmma has",
        mirrors="tensor-core seed: WMMA",
        refuses=lambda problem, target: refusal(OPERANDS, problem, target),
        configs=lambda problem, target: spaces(problem.precision),
        launches=launches,
    )


# (BM, BN, BK, warps down, warps across), the largest first: warps hold 32 x 64 sums of C, or 32 x 32; slices are 64 bytes deep,
# and as shallow or small as fp64 needs to stay in 128 registers.
TILES = {
    **dict.fromkeys(("fp16", "bf16"), ((128, 128, 32, 4, 2), (64, 64, 32, 2, 2))),
    "tf32": ((128, 128, 16, 4, 2), (64, 64, 16, 2, 2)),
    "fp64": ((64, 64, 8, 2, 2), (32, 32, 16, 2, 2)),
    **dict.fromkeys(("int8", "uint8"), ((128, 128, 64, 4, 2), (64, 64, 64, 2, 2))),
}


def a_block_per_tile():
    spaces = {p: [dict(zip(("BM", "BN", "BK", "WARPS_M", "WARPS_N"), tile)) for tile in tiles] for p, tiles in TILES.items()}

    def expression(precision, config, instance, vector):
        sums, result, a, b = instance
        tile = "{BM}, {BN}, {BK}, {WARPS_M}, {WARPS_N}".format(**config)
        flag = "true" if vector else "false"
        return f"matmul::wmma_tiled<matmul::{OPERANDS[precision].name}, {sums}, {tile}, {a}, {b}, {result}, {flag}>"

    def without_vectors(instance):
        """The slices' layout does not matter to reads of single elements: one of them will do."""
        return (*instance[:2], "matmul::row_major", "matmul::row_major")

    def source(precision):
        every = list(itertools.product(spaces[precision], OPERANDS[precision].instances))
        vectors = [expression(precision, config, one, True) for config, one in every]
        elements = [expression(precision, config, without_vectors(one), False) for config, one in every]
        return Source("matmul/wmma_tiled.cuh", (*vectors, *dict.fromkeys(elements)))

    sources = {precision: source(precision) for precision in TILES}

    def configs(problem, target):
        """The largest tile that gives every SM a block first; the smallest, if none does."""
        space = spaces[problem.precision]
        enough = [c for c in space if problem.batch * _tiles(problem, c["BM"], c["BN"]) >= target.sms]
        return enough + [c for c in reversed(space) if c not in enough]

    def launches(problem, config, a, b, c, bias, out):
        vector, one = _vectors(a, problem.a_layout) and _vectors(b, problem.b_layout), instance(problem)
        kernel = expression(problem.precision, config, one if vector else without_vectors(one), vector)
        grid = (a.shape[0] * _tiles(problem, config["BM"], config["BN"]),)
        threads = 32 * config["WARPS_M"] * config["WARPS_N"]
        wired = arguments(problem, a, b, c, bias, out)
        yield CudaLaunch(sources[problem.precision], kernel, grid, (threads, 1, 1), wired)

    return Design(
        name="wmma_tiled",
        summary="warps share slices in skewed shared memory, several fragments each, the next slice under way",
        mirrors="tensor-core seed: WMMA",
        refuses=lambda problem, target: refusal(TILES, problem, target),
        configs=configs,
        launches=launches,
        tile=lambda config: config | {"threads": 32 * config["WARPS_M"] * config["WARPS_N"]},
    )


def _tiles(problem, rows, cols):
    return ceil_div(problem.m, rows) * ceil_div(problem.n, cols)


def _vectors(matrices, layout):
    """Whether lines of neighbours begin at multiples of 16 bytes and are whole vectors of 16 bytes long."""
    line, across = (1, 2) if layout == "col" else (2, 1)
    in_elements = 16 // matrices.element_size()
    wholes = matrices.shape[line], matrices.stride(across), matrices.stride(0)
    aligned = matrices.data_ptr() % 16 == 0 and not any(size % in_elements for size in wholes)
    return aligned and matrices.stride(line) == 1
