"""The launches of Hopper's lessons, and what these refuse."""

from triton.experimental.gluon import language as gl

from ..integers import ceil_div
from ..launch import TritonLaunch
from .descriptor import as_tma_reads, describe_for_gluon
from .hopper import Product, Tile
from .packed import MULTIPLE, packed
from .structs import Matrix


def refuses(problem, target):
    if not target.is_gpu:
        return "a Gluon program needs a GPU, and the interpreter cannot run it"
    return None if target.arch == 90 else f"wgmma is an instruction of sm_90, {target.name} is {target.isa}"


def launch(kernel, problem, config, a, b, c, out):
    """The launch of a kernel that loads its operands itself."""
    yield TritonLaunch(kernel, _grid(problem, config), config, *map(_matrix, (a, b, c, out)), _product(problem), _tile(config))


def launch_with_boxes(kernel, rows, problem, config, a, b, c, out):
    """The launch of a kernel that reads operands by TMA, A in boxes of so many rows, after those that pack operands."""
    pack_a, a, a_along_k = _operand(a, rows, config.kwargs["BLOCK_K"])
    pack_b, b, b_along_k = _operand(b.mT, config.kwargs["BLOCK_N"], config.kwargs["BLOCK_K"])
    yield from pack_a + pack_b
    arguments = a, b, _matrix(c), _matrix(out), _product(problem), _tile(config, a_along_k, b_along_k)
    yield TritonLaunch(kernel, _grid(problem, config), config, *arguments)


def _grid(problem, config):
    """A program per tile, or the config's PROGRAMS, if there are more tiles."""
    tiles = ceil_div(problem.m, config.kwargs["BLOCK_M"]) * ceil_div(problem.n, config.kwargs["BLOCK_N"])
    return (min(tiles, config.kwargs.get("PROGRAMS", tiles)),)


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
