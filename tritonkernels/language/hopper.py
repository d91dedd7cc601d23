"""What the lessons of Hopper's tensor cores share: their problem, operands in boxes for TMA, and how sums are written."""

from typing import Any, NamedTuple

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl

from .descriptor import as_tma_reads, describe_for_gluon
from .packed import MULTIPLE, packed
from .renamed import load_box
from .structs import Matrix

TYPES = tuple((dtype, out_dtype) for dtype in (torch.float16, torch.bfloat16) for out_dtype in (dtype, torch.float32))


class Product(NamedTuple):
    """alpha A B + beta C, of M x N over K."""

    M: Any
    N: Any
    K: Any
    alpha: Any
    beta: Any


class Tile(NamedTuple):
    """Constants: M and N of a tile, K of a slice, how many slices have places, and which operands' boxes lie along K."""

    BLOCK_M: Any
    BLOCK_N: Any
    BLOCK_K: Any
    STAGES: Any
    A_ALONG_K: Any = None
    B_ALONG_K: Any = None


class Operand(NamedTuple):
    """A or B: its TMA descriptor, and places for boxes in shared memory."""

    boxes: Any
    places: Any


def refuses(problem, target):
    if not target.is_gpu:
        return "a Gluon program needs a GPU, and the interpreter cannot run it"
    return None if target.arch == 90 else f"wgmma is an instruction of sm_90, {target.name} is {target.isa}"


def in_memory(problem, config, a, b, c, out):
    """What a kernel takes that loads its operands itself."""
    return *map(_matrix, (a, b, c, out)), _product(problem), _tile(config)


def in_boxes(problem, config, rows, a, b, c, out):
    """(launches that pack operands, what a kernel takes): of one that reads A in boxes of so many rows."""
    pack_a, a, a_along_k = _operand(a, rows, config.kwargs["BLOCK_K"])
    pack_b, b, b_along_k = _operand(b.mT, config.kwargs["BLOCK_N"], config.kwargs["BLOCK_K"])
    return pack_a + pack_b, (a, b, _matrix(c), _matrix(out), _product(problem), _tile(config, a_along_k, b_along_k))


def _product(problem):
    return Product(problem.m, problem.n, problem.k, problem.alpha, problem.beta)


def _tile(config, *along_k):
    return Tile(*map(gl.constexpr, (*(config.kwargs[name] for name in Tile._fields[:4]), *along_k)))


def _matrix(t):
    """The struct of the only matrix of a batch, or None for None."""
    return None if t is None else Matrix.of(t[0])


def _operand(t, rows, columns):
    """(launches that pack it, descriptor of its boxes, whether these lie along K) of an operand (1, M or N, K)."""
    launches = []
    if t.shape[2] == 0:  # TMA cannot describe an empty operand; no box of this one is asked for
        t = t.new_empty(1, 1, MULTIPLE)
    if not (as_tma_reads(t) or as_tma_reads(t.mT)):
        launches, copy = packed(t.mT)
        t = copy.mT
    along_k = as_tma_reads(t)
    box = [rows, columns] if along_k else [columns, rows]
    return launches, describe_for_gluon(t[0] if along_k else t[0].t(), box), along_k


@gluon.jit
def places_for(NUMBER: gl.constexpr, boxes):
    """Shared memory for so many boxes of a descriptor."""
    return gl.allocate_shared_memory(boxes.dtype, [NUMBER] + boxes.block_type.shape, boxes.layout)  # noqa: RUF005


@gluon.jit
def copy_box(operand: Operand, row, k, full, place, ALONG_K: gl.constexpr, pred=True):
    """Ask TMA for the box of an operand from (row, k) on: it fills the place, and counts its bytes on `full`."""
    if ALONG_K:
        load_box(operand.boxes, [row, k], full, operand.places.index(place), pred)
    else:
        load_box(operand.boxes, [k, row], full, operand.places.index(place), pred)


@gluon.jit
def rows_by_k(operand: Operand, place, ALONG_K: gl.constexpr):
    """The box in a place, with the rows of its operand first: wgmma reads 16-bit operands in either order."""
    box = operand.places.index(place)
    return box if ALONG_K else box.permute((1, 0))


@gluon.jit
def store_sums(acc, row, col, c: Matrix, out: Matrix, product: Product):
    """Write alpha acc + beta C to the part of the tile at (row, col) that lies inside. C is None where beta is 0. 64 columns at
    a time: all sums and as many elements of C do not fit into a thread's registers."""
    if acc.shape[1] > 64:
        HALF: gl.constexpr = acc.shape[1] // 2
        left, right = acc.reshape((acc.shape[0], 2, HALF)).permute((0, 2, 1)).split()
        store_sums(left, row, col, c, out, product)
        store_sums(right, row, col + HALF, c, out, product)
    else:
        rows = row + gl.arange(0, acc.shape[0], gl.SliceLayout(1, acc.type.layout))[:, None]
        cols = col + gl.arange(0, acc.shape[1], gl.SliceLayout(0, acc.type.layout))[None, :]
        inside = (rows < product.M) & (cols < product.N)
        result = product.alpha * acc
        if c is not None:
            result += product.beta * gl.load(c.ptr + rows * c.row + cols * c.col, mask=inside, other=0).to(gl.float32)
        gl.store(out.ptr + rows * out.row + cols * out.col, result.to(out.ptr.dtype.element_ty), mask=inside)
