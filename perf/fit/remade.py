"""Designs that became other kernels after they were timed: their earlier times say nothing of today's.

Until they are timed again such a design keeps the figures that it has: what its main loop sustains is what it was.
"""

from tritonkernels.choice import efficiency
from tritonkernels.design import as_dict

_EPILOGUE = "2026-11-25T11:30"  # bias from shared memory, short epilogues as straight code
_ROWS = "2026-11-27T05:20"  # they go through shared memory
_LOOP = "2026-11-27T03:00"  # less between the products of two slices, which small tiles wait for
_BY_MMA = "2026-11-27T09:00"  # tf32 is rounded in one instruction, odd rows go through shared memory
CHUNK, ODD_ROWS = 16, "rows that TMA cannot write"  # bytes that its rows are multiples of
FEW_TAPS, LONG_COLUMNS = 5, "long columns of taps"  # of which each tap had loads of its own
_LONG_ROWS = "2026-12-01T00:00"  # a phase of a gradient is a product of all rows, for each column, not of a row
# A design, or one in a precision, or for problems of a class, ODD_ROWS or LONG_COLUMNS, or by a number of its configs: since
# when times count
REMADE = {
    f"cuda_reference matmul.persistent: {ODD_ROWS}": _ROWS,
    "cuda_reference matmul.cluster_split_k": _LOOP,
    "cuda_reference matmul.persistent: CONSUMERS 1": _LOOP,
    "cuda_reference matmul.persistent: BN 64": _LOOP,
    "cuda_reference gemm.split_k": "2026-11-23T19:00",  # one kernel instead of two, in which the last block of a tile adds
    "cuda_reference gemm.stream_k": "2026-11-23T19:00",
    "tritonkernels gemm.split_k": "2026-11-23T19:00",
    **{f"cuda_reference matmul.{name} tf32": _BY_MMA for name in ("pipelined", "split_k")},
    **{f"cuda_reference matmul.{name}: {ODD_ROWS}": _BY_MMA for name in ("pipelined", "split_k")},
    **{
        f"cuda_reference matmul.persistent: {of_class}": _EPILOGUE
        for of_class in ("bias True", "activation relu", "activation gelu", "activation silu")
    },
    "cuda_reference matmul.fused_planes": "2026-11-25T11:30",  # splits in half of the instructions
    "cuda_reference matmul.fused_planes: aligned False": "2026-11-25T18:40",  # reads operands where they are, without a copy
    **{  # read each operand in pieces of its own alignment, 16 bits of any
        f"cuda_reference matmul.{name}: aligned False": "2026-11-26T22:03" for name in ("pipelined", "split_k")
    },
    "cuda_reference conv2d_weight.warp_specialized: channels_last False": "2026-11-29T17:19",  # operands copied at copy speed
    **{  # are stored in whole words, shifted between lanes
        f"cuda_reference {name}: {ODD_ROWS}": "2026-11-30T02:00"
        for name in ("gemm.rasterized", "gemm.async_copy", "gemm.split_k", "gemm.stream_k", "matmul.cuda_cores")
    },
    **{  # of 256 threads two blocks fit on an SM
        f"cuda_reference {name}: aligned False": "2026-11-30T21:00"
        for name in ("gemm.rasterized", "gemm.async_copy", "gemm.split_k", "gemm.stream_k", "matmul.cuda_cores")
    },
    **{f"cuda_reference conv2d.{name}: {LONG_COLUMNS}": "2026-11-30T11:30" for name in ("depthwise", "depthwise_channels")},
    f"tritonkernels conv2d.depthwise_channels: {LONG_COLUMNS}": "2026-11-30T12:00",  # columns of taps in turn, packed or not
    "tritonkernels conv2d_weight.depthwise": "2026-11-30T08:33",  # in Gluon
    "tritonkernels matmul.persistent tf32": "2026-11-25T11:30",  # TMA rounds, nothing is copied along K
    f"tritonkernels matmul.warp_specialized: {ODD_ROWS}": "2026-11-27T15:36",  # a warp writes neighbours of a row
}


def of_today(runs):
    """The Counted runs without those of kernels that are no more."""
    return [run for run in runs if run.shape.date >= _since(run)]


def of_today_only(runs):
    """The Counted runs of shapes, in a package each, that have no others: the choice is judged among what there is today."""
    current = {id(run) for run in of_today(runs)}
    old = {(id(run.shape), run.package) for run in runs if id(run) not in current}
    return [run for run in runs if (id(run.shape), run.package) not in old]


def kept(runs, figures):
    """{key: Sustained}, of `figures`, of what was remade and none of the runs is of."""
    waiting = REMADE.keys() - {run.key for run in runs} - {design_of(run.key) for run in runs}
    return {key: own for key, own in figures.items() if key != efficiency.ANY and not waiting.isdisjoint((key, design_of(key)))}


def _since(run):
    design, parts = design_of(run.key), [*run.factors, *(f"{name} {value}" for name, value in as_dict(run.config).items())]
    if hasattr(run.problem, "n") and run.problem.n * run.problem.out_dtype.itemsize % CHUNK:
        parts.append(ODD_ROWS)
    if getattr(run.problem, "r", 0) > FEW_TAPS:
        parts.append(LONG_COLUMNS)
    since = (REMADE.get(name, "") for name in (run.key, design, *(f"{design}: {part}" for part in parts)))
    return max(*since, _LONG_ROWS if _is_of_phases(run) else "")


def _is_of_phases(run):
    """Whether it was products of matrices for the phases of a gradient with a stride, in channels_last."""
    problem = run.shape.problem
    in_phases = problem.op == "conv2d_input" and max(problem.stride) > 1 and problem.channels_last
    return in_phases and design_of(run.key).split()[1].startswith("matmul.")


def design_of(key):
    """A key without its precision."""
    return " ".join(key.split()[:2])
