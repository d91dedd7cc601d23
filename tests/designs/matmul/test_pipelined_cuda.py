"""The CUDA design pipelined: its accesses in the emulation's trace, and its machine code for GPUs that need not be present."""

from pathlib import Path

import pytest
import torch

from cuda_reference.common.align import PIECES, along_k, k_major
from cuda_reference.launch import LIBRARY, CudaLaunch, Source
from cuda_reference.matmul.pipelined import DESIGN, FOR_LITTLE_K, FOR_ODD_ROWS, LITTLE, THIN
from perf.offline import sass
from tests import nvcc
from tests.harness import only, prepare, random, run_checked, short, thorough, transposed
from tritonkernels.target import Target

LAYOUTS = {"row": lambda t: t, "col": transposed}
BIG, SMALL = ({"BM": 128, "BN": 256, "SLICE": 128}, {"BM": 64, "BN": 64, "SLICE": 64})
TURNED = {torch.float16: {}, torch.float32: {"precision": "tf32"}, torch.float64: {}}  # whose operands may lie along M or N
BIG_DOUBLE, SMALL_DOUBLE = ({"BM": 128, "BN": 128}, {"BM": 64, "BN": 64})
# each of both layouts by some tiles: every layout of a tile takes g++ a second
one_layout_of_a_tile = short(
    lambda layout_a, layout_b, config: layout_a == layout_b == ("col" if config["BM"] < config["BN"] else "row")
)


def launches(a, b, config, **kwargs):
    call = prepare("matmul", a, b, **kwargs)
    (chosen,) = (c for c in DESIGN.configs(call.problem, Target.named("simt")) if config.items() <= c.items())
    return list(DESIGN.launches(call.problem, chosen, *call.parts[0]))


@short(
    lambda layout_a, layout_b, dtype, config: (
        config not in (BIG, BIG_DOUBLE)
        and layout_a == layout_b
        and (config not in THIN or (config["BM"] < config["BN"]) == (layout_a == "row"))
    )
)
@pytest.mark.parametrize(
    "layout_a, layout_b, dtype, config",
    [
        *((a, b, torch.float16, SMALL) for a in LAYOUTS for b in LAYOUTS),
        ("row", "row", torch.float16, BIG),
        *((a, b, torch.float64, SMALL_DOUBLE) for a in LAYOUTS for b in LAYOUTS),
        ("row", "row", torch.float64, BIG_DOUBLE),
        *((a, b, torch.float32, SMALL) for a in LAYOUTS for b in LAYOUTS),
        *((layout, layout, dtype, thin) for layout in LAYOUTS for dtype in TURNED for thin in THIN),
    ],
)
def test_accesses(layout_a, layout_b, dtype, config):
    """Fragments and slices have no bank conflicts and no races; every global access uses the fewest possible sectors."""
    from cuda_reference.trace import trace

    k = 640 // dtype.itemsize
    a, b = LAYOUTS[layout_a](random(config["BM"], k, dtype=dtype)), LAYOUTS[layout_b](random(k, config["BN"], dtype=dtype))
    (launch,) = launches(a, b, config, **TURNED[dtype])
    (traced,) = trace(launch)
    assert traced.races == ()
    shared = [access for access in traced.accesses if access.space == "shared"]
    by_ldmatrix = [
        dtype == torch.float16 or (dtype == torch.float32 and along_k)  # 16 bytes
        for along_k in (layout_a == "row", layout_b == "col")
    ]
    reads = {("read", 16 if loads else dtype.itemsize) for loads in by_ldmatrix}
    assert {(access.kind, access.width) for access in shared} == reads | {("write", 16)}
    stores = [access for access in traced.accesses if access.kind == "write" and access.space == "global"]
    pairs = config["BN"] == 16 and dtype == torch.float16  # whose stores fill a half of a sector
    assert [
        str(access) for access in traced.accesses if access.units != access.ideal_units * (1 + pairs * (access in stores))
    ] == []
    assert {access.width for access in stores} == {{2: 4 if pairs else 16, 4: 8, 8: 16}[dtype.itemsize]}


def test_the_trace_sees_a_tile_that_is_not_swizzled():
    """The test above can fail: with rows of 128 bytes in order, the 8 rows of an ldmatrix are in the same banks."""
    from cuda_reference.trace import trace

    source = Path(__file__).parents[2] / "simt/kernels/swizzle.cuh"
    out = torch.zeros(32 * 4, dtype=torch.int32)
    for swizzled, degree in (("false", 8), ("true", 1)):
        launch = CudaLaunch(Source(str(source), ()), f"swizzle::load<{swizzled}>", (1,), (32, 1, 1), (out,))
        (traced,) = trace(launch)
        (load,) = (access for access in traced.accesses if access.space == "shared" and access.kind == "read")
        assert (load.requests, load.units) == (4, 4 * degree)


@short(lambda layout_a, layout_b, sizes: layout_a == layout_b or sizes == (65, 72, 200))
@pytest.mark.parametrize("sizes", [(1, 8, 8), (64, 64, 64), (65, 72, 200), (130, 264, 136), (8, 300, 1000)], ids=str)
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_operands_copied_by_16_bytes(sizes, layout_a, layout_b):
    """M, N and K are multiples of 8 but not of a tile; memory outside of the operands must not be accessed."""
    m, n, k = sizes
    for dtype, options in TURNED.items():
        a, b = LAYOUTS[layout_a](random(m, k, dtype=dtype)), LAYOUTS[layout_b](random(k, n, dtype=dtype))
        run_checked(LIBRARY, "matmul", "pipelined", a, b, **options)


@one_layout_of_a_tile
@pytest.mark.parametrize("config", FOR_LITTLE_K, ids=lambda config: f"{config['BM']}x{config['BN']}")
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_tiles_for_little_k(layout_a, layout_b, config):
    """Two tiles of few rows or columns, in pieces of 4 and 16 bytes: none, a part and all of what K may be."""
    along_k = layout_a == "row" and layout_b == "col"
    kinds = (torch.float16, {}), (torch.float32, {"precision": "tf32"}), *(along_k * ((torch.int8, {}),))
    for dtype, options in kinds:
        most = LITTLE // dtype.itemsize
        for k, fewer in ((most, 0), (most // 2 - 4 // dtype.itemsize, 2), (16, 0), (0, 0)):
            m, n = (size - fewer if size < 64 else size + 8 - fewer for size in (config["BM"], config["BN"]))
            a, b = LAYOUTS[layout_a](random(m, k, dtype=dtype)), LAYOUTS[layout_b](random(k, n, dtype=dtype))
            run_checked(LIBRARY, "matmul", "pipelined", a, b, config=config, **options)


def test_tiles_for_little_k_are_for_little_k():
    """Doubles have too short steps."""

    def thinnest(k, dtype):
        a = torch.empty(300, k, dtype=dtype, device="meta")
        configs = DESIGN.configs(prepare("matmul", a, a[:16].mT).problem, Target.named("h100"))
        return [config for config in configs if config in FOR_LITTLE_K]

    assert len(thinnest(128, torch.float16)) == 3
    assert thinnest(129, torch.float16) == thinnest(16, torch.float64) == []


@one_layout_of_a_tile
@pytest.mark.parametrize(
    "config", FOR_ODD_ROWS, ids=lambda config: "x".join(str(config[name]) for name in ("BM", "BN", "SLICE"))
)
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_tiles_for_odd_rows(layout_a, layout_b, config):
    """Results with rows of any alignment, two tiles by two: all that they may be added to, and several slices of K."""
    for dtype in (torch.float16, torch.bfloat16):
        m, n, k = config["BM"] + 3, config["BN"] + 1, 90
        a, b, c, bias = (random(*shape, dtype=dtype) for shape in ((m, k), (k, n), (m, n), (n,)))
        a, b = LAYOUTS[layout_a](a), LAYOUTS[layout_b](b)
        run_checked(LIBRARY, "matmul", "pipelined", a, b, config=config, c=c, beta=0.5, bias=bias)


def test_which_problems_have_tiles_for_odd_rows():
    """Operands with rows of 16 bits that are no whole chunks of 16 bytes."""

    def wide(n, dtype, **options):
        a = torch.empty(300, 64, dtype=dtype, device="meta")
        configs = DESIGN.configs(prepare("matmul", a, a[:n].mT, **options).problem, Target.named("h100"))
        return [config for config in configs if config in FOR_ODD_ROWS]

    assert wide(100, torch.float16) == wide(5, torch.bfloat16) == FOR_ODD_ROWS
    assert wide(104, torch.float16) == wide(99, torch.float16, out_dtype=torch.float32) == wide(99, torch.float64) == []


@one_layout_of_a_tile
@pytest.mark.parametrize("config", THIN, ids=lambda config: f"{config['BM']}x{config['BN']}")
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_tiles_of_few_rows_or_columns(layout_a, layout_b, config):
    """All that they cover, and one tile more the other way."""
    m, n = (size if size < 64 else size + 8 for size in (config["BM"], config["BN"]))
    for dtype, options in TURNED.items():
        a, b, c = (random(*shape, dtype=dtype) for shape in ((m, 200), (200, n), (m, n)))
        a, b = LAYOUTS[layout_a](a), LAYOUTS[layout_b](b)
        run_checked(LIBRARY, "matmul", "pipelined", a, b, c=c, beta=0.5, config=config, **options)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_epilogues_of_doubles(activation):
    """Gelu and silu change a lane's numbers in a loop, four at a time: each of them once, and in its place."""
    a, b, c, bias = (random(*size, dtype=torch.float64) for size in ((70, 18), (18, 66), (70, 66), (66,)))
    run_checked(LIBRARY, "matmul", "pipelined", a, b, c=c, beta=-0.5, bias=bias, activation=activation)


@short(lambda layout, dtype: layout == "col" and dtype in (torch.float16, torch.float64))
@pytest.mark.parametrize("dtype", [torch.int8, torch.float16, torch.float32, torch.float64])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_accesses_of_align(layout, dtype):
    from cuda_reference.trace import trace

    _, (launch,) = along_k(LAYOUTS[layout](random(1, 128, 64, dtype=dtype)), 1)
    (traced,) = trace(launch)
    assert traced.races == ()
    assert [str(access) for access in traced.accesses if access.units != access.ideal_units] == []


@pytest.mark.parametrize(
    "matrix, expected",
    [
        (torch.empty(1, 16, 24, dtype=torch.float16), True),
        (torch.empty(1, 24, 16, dtype=torch.float16).transpose(1, 2), False),
        (torch.empty(1, 16, 20, dtype=torch.float16), None),
        (torch.empty(1, 16, 32, dtype=torch.float16)[:, :, 1:25], None),
        (torch.empty(1, 16, 32, dtype=torch.float16)[:, :, ::2], None),
        (torch.empty(1, 1, 24, dtype=torch.float16).expand(1, 16, 24), True),
        (torch.empty(1, 16, 1, dtype=torch.float16).expand(1, 16, 24), None),
        (torch.empty(1, 16, 24), True),
        (torch.empty(1, 24, 16).transpose(1, 2), False),
        (torch.empty(3, 16, 20, dtype=torch.int8), None),
        (torch.empty(3, 16, 32, dtype=torch.int8), True),
        (torch.empty(3, 16, 30, dtype=torch.float64), True),
        (torch.empty(3, 30, 16, dtype=torch.float64).transpose(1, 2), False),
        (torch.empty(3, 16, 31, dtype=torch.float64), None),
    ],
)
def test_which_operands_need_no_alignment(matrix, expected):
    assert k_major(matrix, 1) is expected
    assert k_major(matrix.transpose(1, 2), 2) is expected


def pieces(lines, itemsize):
    """Bytes that lines of so many elements are aligned to, up to a chunk."""
    return next(piece for piece in PIECES if lines * itemsize % piece == 0)


@only(lambda dtype, layout_a, layout_b: dtype != torch.int8 or (layout_a, layout_b) == ("row", "col"))
@short(lambda layout_a, layout_b, dtype: layout_a == layout_b or dtype == torch.int8)
@pytest.mark.parametrize(
    "dtype, m, n, k, options",
    [
        (torch.float32, 37, 66, 27, {"precision": "tf32"}),
        (torch.float64, 37, 65, 27, {}),
        (torch.float16, 38, 66, 26, {}),
        (torch.float16, 40, 64, 24, {}),
        (torch.float16, 37, 65, 63, {}),
        (torch.bfloat16, 67, 3, 129, {}),
        (torch.bfloat16, 1, 71, 65, {}),
        (torch.int8, 70, 66, 36, {}),
    ],
)
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_operands_of_a_lower_alignment_are_copied_in_pieces(dtype, m, n, k, options, layout_a, layout_b):
    """Each in its own, no launch copies them first, and nothing outside of them is read."""
    a, b = LAYOUTS[layout_a](random(m, k, dtype=dtype)), LAYOUTS[layout_b](random(k, n, dtype=dtype))
    (launch,) = launches(a, b, SMALL_DOUBLE if dtype == torch.float64 else SMALL, **options)
    if min(m, n) > 1:
        of_a, of_b = (
            pieces(k if along else span, dtype.itemsize) for along, span in ((layout_a == "row", m), (layout_b == "col", n))
        )
        assert f", {of_a}, {of_b}, true, " in launch.expression
    run_checked(LIBRARY, "matmul", "pipelined", a, b, **options)


def within_lines(matrix, layout, first):
    """The matrix in memory whose lines begin at this element of longer ones, which are NaN elsewhere."""
    lines = matrix if layout == "row" else matrix.mT
    room = torch.full((lines.shape[0], lines.shape[1] + 2), float("nan"), dtype=matrix.dtype)
    held = room[:, first : first + lines.shape[1]]
    held.copy_(lines)
    return held if layout == "row" else held.mT


@short(lambda config, layout_a, layout_b, first: layout_a == layout_b)
@pytest.mark.parametrize("config", [*THIN, SMALL])
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
@pytest.mark.parametrize("first", [0, 1])
def test_halves_that_begin_anywhere(config, layout_a, layout_b, first):
    """Slices before the last come in words, of lines that begin within a word and of others; some are shorter than a chunk."""
    m, n, k = (5, 131, 197) if config["BM"] < config["BN"] else (131, 5, 197)
    a = within_lines(random(m, k, dtype=torch.float16), layout_a, first)
    b = within_lines(random(k, n, dtype=torch.float16), layout_b, first)
    (launch,) = launches(a, b, config)
    assert ", 2, 2, " in launch.expression
    run_checked(LIBRARY, "matmul", "pipelined", a, b, config=config)


def test_other_operands_are_aligned_first():
    """Lines of no whole words of bytes, and elements apart along both dimensions."""
    a, b = random(70, 37, dtype=torch.int8), transposed(random(37, 64, dtype=torch.int8))
    names = [launch.expression.partition("<")[0] for launch in launches(a, b, SMALL)]
    assert names == ["operands::align", "operands::align", "matmul::pipelined"]
    apart = random(140, 74, dtype=torch.float64)[::2, ::2]
    names = [launch.expression for launch in launches(apart, random(37, 64, dtype=torch.float64), SMALL_DOUBLE)]
    assert names[:-1] == ["operands::align<uint64_t>"] and ", true, false, 16, 16, true, " in names[-1]


def test_configs_fit_the_target():
    call = prepare("matmul", *(torch.empty(4096, 4096, dtype=torch.float16, device="meta") for _ in range(2)))
    for name in ("a100", "rtx_4090", "h200", "rtx_5090"):
        target = Target.named(name)
        for config in DESIGN.configs(call.problem, target):
            (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
            assert launch.shared_bytes <= target.shared_per_block
    first = next(iter(DESIGN.configs(call.problem, Target.named("h200"))))
    assert BIG.items() <= first.items() or (first["BM"], first["BN"]) == (256, 128)


# The hot loop of a 128 x 256 tile with 128 bytes of k: (instruction of the products, how many)
CODE = {
    "fp16": (torch.float16, {}, "HMMA.16816.F32", 128),
    "fp16 to fp32": (torch.float16, {"out_dtype": torch.float32}, "HMMA.16816.F32", 128),
    "fp16 in fp16": (torch.float16, {"accumulate": "fp16"}, "HMMA.16816.F16", 128),
    "bf16": (torch.bfloat16, {}, "HMMA.16816.F32.BF16", 128),
    "tf32": (torch.float32, {"precision": "tf32"}, "HMMA.1688.F32.TF32", 128),
    "int8": (torch.int8, {}, "IMMA.16832.S8.S8", 128),
}


def compiled(launch, architecture):
    cubin = nvcc.compiled(architecture.removeprefix("sm_"), [launch.source.header], [launch.expression]).cubin
    (code,) = sass.read(cubin).values()
    return code


@thorough
@nvcc.needed
@pytest.mark.parametrize(
    "kind, architecture",
    # sm_80 and sm_90 have the same instructions: one of each kind of loop is enough
    [*((kind, "sm_90") for kind in CODE), *((kind, "sm_80") for kind in ("fp16", "tf32", "int8")), ("fp16", "sm_120")],
)
def test_machine_code(kind, architecture):
    """No spills; 8 LDSM and 32 MMA per warp and 32 bytes of k; 12 LDGSTS and one barrier per slice."""
    dtype, options, instruction, count = CODE[kind]
    a, b = (torch.empty(4096, 4096, dtype=dtype, device="meta") for _ in range(2))
    b = b if dtype.itemsize == 2 else b.t()
    config = BIG if architecture != "sm_120" else BIG | {"SLICE": 64}  # all that shared memory allows
    slice_part = config["SLICE"] / BIG["SLICE"]
    (launch,) = launches(a, b, config, **options)
    code = compiled(launch, architecture)
    loop = code.hot_loop()
    assert code.stack_bytes == 0 and code.registers <= 255
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == count * slice_part
    assert sass.count(loop, ("LDSM",)) == 32 * slice_part
    if kind == "tf32" and architecture != "sm_80":
        assert sass.count(loop, ("F2FP.TF32",)) == 128 * slice_part, "an instruction for each number of a fragment"
    if architecture != "sm_120":  # there the hot loop holds no copies: not explained yet
        assert sass.count(loop, ("LDGSTS",)) == 12
        assert sass.count(loop, ("BAR.SYNC",)) == 1
    # tf32: before Hopper rounding takes four instructions per operand, to keep NaN
    share = 0.17 if kind == "tf32" else 0.25 if architecture == "sm_120" else 0.4
    assert sass.share(loop, sass.TENSOR) >= share, f"{loop.total()} instructions: {loop}"


@thorough
@nvcc.needed
@pytest.mark.parametrize("architecture, instruction, count", [("sm_90", "DMMA.16x8x8", 32), ("sm_80", "DMMA.884", 128)])
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_machine_code_of_doubles(layout_a, layout_b, architecture, instruction, count):
    """A 64 x 32 warp tile and 16 of k: 12 KB are loaded straight into the registers of the products, nothing is spilled."""
    a, b = (LAYOUTS[layout](torch.empty(4096, 4096, dtype=torch.float64, device="meta")) for layout in (layout_a, layout_b))
    (launch,) = launches(a, b, BIG_DOUBLE)
    code = compiled(launch, architecture)
    loop = code.hot_loop()
    assert code.stack_bytes <= 8 and sass.count(loop, sass.LOCAL) == 0
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == count
    assert sass.count(loop, ("LDS.64",)) == 48 and sass.count(loop, ("LDSM", "LDS.128")) == 0
    assert sass.count(loop, ("MOV", "IMAD.MOV")) <= 24, f"{loop.total()} instructions: {loop}"


def test_half_sums_are_less_exact():
    """A kernel that ignored `accumulate` would fail here."""
    a, b = random(64, 512, dtype=torch.float16), random(512, 64, dtype=torch.float16)
    _, in_half = run_checked(LIBRARY, "matmul", "pipelined", a, b, accumulate="fp16", out_dtype=torch.float32)
    _, in_float = run_checked(LIBRARY, "matmul", "pipelined", a, b, out_dtype=torch.float32)
    assert in_float.error < in_half.error / 16
