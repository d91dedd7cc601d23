"""What the launchers of the Hopper lessons share: operands along K, their tensor maps, the result's arguments, the grid."""

from ...common.align import aligned, in_whole_pieces
from ...launch import Kernel, TensorMap
from ..persistent import as_tma_reads
from .arguments import mma_types
from .space import tiles

BK = 64  # elements of k in a slice, 128 bytes
_INSTANCES = [
    {"ELEMENT": element, "RESULT": result} for element in ("__half", "__nv_bfloat16") for result in (element, "float")
]


def refuses(problem, target):
    if target.is_gpu and target.arch != 90:
        return f"it needs wgmma, which only sm_90 has; {target.name} is {target.isa}"
    return None


def kernel(name, parameters):
    """The Kernel of a lesson, whose template has the types of operands and result first; all types are built together."""
    return Kernel(f"matmul::{name}<{{ELEMENT}}, {{RESULT}}, {parameters}>", _INSTANCES)


def _is_in_rows(matrix, span_dim):
    """True if TMA can read the matrix as rows along K, and cp.async whole chunks of it; else None."""
    return (as_tma_reads(matrix, span_dim, transposable=False) and in_whole_pieces(matrix, span_dim)) or None


def along_k(a, b):
    """(A by rows, B by columns, both along K in whole chunks of 16 bytes, the launches that pack what lies otherwise)."""
    a, copies_of_a = aligned(a, 1, _is_in_rows)
    b, copies_of_b = aligned(b, 2, _is_in_rows)
    return a, b.transpose(1, 2), copies_of_a + copies_of_b


def result(problem, c, out):
    """(C or None, out, M, N, K, alpha, beta, strides of C, strides of out)"""
    sizes = problem.m, problem.n, problem.k
    return c, out, *sizes, problem.alpha, problem.beta, (0, 0) if c is None else c.stride()[1:], out.stride()[1:]


def launches_by_tma(kernel, threads, problem, config, a, b, c, out, cluster=1):
    """The launches of a lesson with a ring of STAGES. `cluster` blocks have tiles one above the other, and share slices of B.
    With a GROUP, so many rows of tiles are a band, and at most BLOCKS walk them."""
    a, b, copies = along_k(a, b)
    yield from copies
    maps = TensorMap(a, (config["BM"], BK)), TensorMap(b, (config["BN"] // cluster, BK))
    blocks = cluster * tiles(problem, cluster * config["BM"], config["BN"])
    group = (config["GROUP"] // cluster,) if "GROUP" in config else ()
    stage = (config["BM"] + config["BN"]) * BK * problem.dtype.itemsize
    yield kernel.launch(
        config | mma_types(problem),
        (min(config.get("BLOCKS", blocks), blocks),),
        threads,
        (*maps, *group, *result(problem, c, out)),
        config["STAGES"] * (stage + 16) + 16,  # two mbarriers a stage, and one for each consumer's turn
    )
