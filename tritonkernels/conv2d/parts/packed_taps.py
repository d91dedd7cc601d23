"""Filters packed as (c, r, s, k) in the type of the sums, so that lanes along output channels load their taps in vectors."""

import math
from typing import Any, NamedTuple

import torch

from ...integers import ceil_div
from ...language.dot import widened
from ...language.overlap import wait_for_earlier_kernels
from ...language.packed import MULTIPLE
from ...language.structs import Filters
from ...language.tiles import span
from ...language.triton import tl, triton
from ...launch import TritonLaunch
from ...operations.conv2d.work import rewritten
from ...problem import needs_wide_offsets
from .lanes import load_along


class Taps(NamedTuple):
    """Packed filters (C / groups, R, S, row), a row (groups, lanes, KT)."""

    ptr: Any
    row: Any
    lanes: Any  # of a group


PACKING = triton.Config({"BLOCK_M": 32, "BLOCK_N": 64}, num_warps=4, num_stages=1)


@triton.jit
def _filters_kernel(
    weight: Filters, taps: Taps, C_PER_GROUP, K_PER_GROUP, GROUPS, R, S,
    KT: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """weight (K, C_PER_GROUP, R, S) as Taps, padded with zeros after each group and at the end. WIDE: offsets need 64 bits."""
    wait_for_earlier_kernels()
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    blocks = tl.cdiv(taps.row, BLOCK_N)
    tap = span(program // blocks * BLOCK_M, BLOCK_M, WIDE)[:, None]
    at = span(program % blocks * BLOCK_N, BLOCK_N, WIDE)[None, :]
    c = tap // S // R
    k = at % (taps.lanes * KT)
    group = at // (taps.lanes * KT)
    inside = (c < C_PER_GROUP) & (at < taps.row)
    of_k = (group * K_PER_GROUP + k) * weight.k
    offsets = of_k + (c * weight.c + tap // S % R * weight.r + tap % S * weight.s)
    inside_of_it = inside & (group < GROUPS) & (k < K_PER_GROUP)
    found = load_along(True, weight.ptr, offsets, inside_of_it)  # lanes along taps
    tl.store(taps.ptr + tap * taps.row + at, widened(found, taps.ptr.dtype.element_ty), mask=inside)


def lanes_of(problem, kt):
    """How many lanes of kt output channels a group takes."""
    return ceil_div(problem.k // problem.groups, kt)


def row_of_taps(problem, lanes, kt):
    """Elements of a row of Taps: whole programs of `lanes` lanes, so that taps need no mask."""
    program = math.lcm(lanes * kt, MULTIPLE)
    return ceil_div(problem.groups * lanes_of(problem, kt) * kt, program) * program


def packing_blocks(problem, row):
    return ceil_div(problem.terms, PACKING.kwargs["BLOCK_M"]) * ceil_div(row, PACKING.kwargs["BLOCK_N"])


def packed(problem, weight, lanes, kt):
    """(Taps for programs of `lanes` lanes of kt output channels, the launches that fill them)."""
    channels, outputs, row = problem.c // problem.groups, problem.k // problem.groups, row_of_taps(problem, lanes, kt)
    sums = torch.float64 if problem.dtype == torch.float64 else torch.float32
    found = torch.empty((channels, problem.r, problem.s, row), dtype=sums, device=weight.device)
    taps = Taps(found, row, lanes_of(problem, kt))
    if not found.numel():
        return taps, ()
    sizes, wide = (channels, outputs, problem.groups, problem.r, problem.s), problem.wide or needs_wide_offsets(found)
    grid = (packing_blocks(problem, row),)
    return taps, (TritonLaunch(_filters_kernel, grid, PACKING, Filters.of(weight), taps, *sizes, KT=kt, WIDE=wide),)


def packing(problem, lanes, kt):
    """The Work of these launches."""
    row, size = row_of_taps(problem, lanes, kt), max(4, problem.dtype.itemsize)
    if not problem.terms or not row:
        return ()
    moved = problem.terms * (row * size + problem.k * problem.dtype.itemsize)
    return (rewritten(packing_blocks(problem, row), 128, moved),)
