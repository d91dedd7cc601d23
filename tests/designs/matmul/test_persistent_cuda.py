"""The CUDA design persistent: tile edges and several rounds of the ring in the emulation, and its machine code for Hopper."""

import dataclasses

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from cuda_reference.matmul.persistent import DESIGN, as_tma_reads, shared_bytes
from perf.offline import sass
from tests import nvcc
from tests.harness import prepare, random, run_checked, short, thorough, transposed
from tritonkernels.target import Target

LAYOUTS = {"row": lambda t: t, "col": transposed}
SMALL, BIG, HIGH = {"BM": 64, "BN": 64}, {"BM": 128, "BN": 256}, {"BM": 256, "BN": 128}
THREE = {"BM": 192, "BN": 192}  # by three consumers
PAIR, HIGH_PAIR = {"BM": 128, "BN": 128, "CLUSTER": 2}, HIGH | {"CLUSTER": 2}  # which share slices of B, of A
LOW_TRIO, WIDE = {"BM": 192, "BN": 128}, {"BM": 128, "BN": 192}  # whose pairs share slices of B, of A: the smaller operand's
LARGE, LARGE_PAIR = ({"BM": 256, "BN": 192, "CLUSTER": cluster} for cluster in (1, 2))
TRIO_PAIR, WIDE_PAIR = LOW_TRIO | {"CLUSTER": 2}, WIDE | {"CLUSTER": 2}
FOUR, HIGH_FOUR = PAIR | {"CLUSTER": 4}, HIGH | {"CLUSTER": 4}  # which share both
SMALL_FOUR, LOW_FOUR = SMALL | {"CLUSTER": 4}, {"BM": 64, "BN": 128, "CLUSTER": 4}  # whose halves across K are rows of a box
ROW_OF_FOUR, HIGH_ROW_OF_FOUR = ({"BM": bm, "BN": 64, "CLUSTER": 4, "SHARE_A": 4} for bm in (64, 128))


def config_of(call, tile, target="simt"):
    return next(c for c in DESIGN.configs(call.problem, Target.named(target)) if tile.items() <= c.items())


def launches(a, b, tile, target="h200", **kwargs):
    call = prepare("matmul", a, b, **kwargs)
    return list(DESIGN.launches(call.problem, config_of(call, tile, target), *call.parts[0]))


@pytest.mark.parametrize("sizes", [(8, 8, 64), (64, 64, 64), (72, 56, 200), (136, 264, 520), (8, 304, 1000)], ids=str)
@pytest.mark.parametrize("layout_a", LAYOUTS)
@pytest.mark.parametrize("layout_b", LAYOUTS)
def test_operands_that_tma_reads_without_a_copy(sizes, layout_a, layout_b):
    """Boxes partly and wholly outside of operands; several tiles for each of 3 blocks; several rounds of 4 stages along K."""
    m, n, k = sizes
    a, b = LAYOUTS[layout_a](random(m, k, dtype=torch.float16)), LAYOUTS[layout_b](random(k, n, dtype=torch.float16))
    names = [launch.expression.partition("<")[0] for launch in launches(a, b, SMALL, "simt")]
    assert names == ["matmul::persistent"]
    run_checked(LIBRARY, "matmul", "persistent", a, b)


@pytest.mark.parametrize("sizes", [(8, 8, 64), (72, 56, 100), (136, 264, 260)], ids=str)
def test_fp32_along_k_is_rounded_to_tf32_without_a_copy(sizes):
    m, n, k = sizes
    a, b = random(m, k), transposed(random(k, n))
    assert [launch.name for launch in launches(a, b, SMALL, "simt", precision="tf32")] == ["persistent"]
    run_checked(LIBRARY, "matmul", "persistent", a, b, precision="tf32")
    one, _ = run_checked(LIBRARY, "matmul", "persistent", a, torch.eye(k), precision="tf32")
    assert ((one - a).abs() <= 2.0**-11 * a.abs()).all(), "to nearest: 2^-10 would do if it were chopped"
    assert not (one.view(torch.int32) & 0x1FFF).any(), "13 bits of the mantissa are gone"


@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_batches_in_any_order(monkeypatch, order):
    """About half of the copies land at once here, so that an early copy would overwrite a slice that is still read."""
    monkeypatch.setenv("SIMT_ORDER", order)
    a, b = random(2, 72, 328, dtype=torch.float16), transposed(random(2, 328, 72, dtype=torch.float16))
    run_checked(LIBRARY, "matmul", "persistent", a, b)
    run_checked(LIBRARY, "matmul", "persistent", a, b[:1].expand(2, 328, 72))


@short(lambda order, tile: order == "" or (order == "1" and tile in (PAIR, FOUR)))
@pytest.mark.parametrize("order", ["", "1", "2", "3"])
@pytest.mark.parametrize(
    "sizes, batches, tile",
    [
        ((256, 128, 328), 1, PAIR),  # a tile for each block
        ((300, 264, 520), 1, PAIR),  # the last pair's second tile lies outside; several pairs and rounds of the ring
        ((8, 136, 1000), 2, PAIR),  # every pair's second tile does
        ((264, 300, 328), 1, HIGH_PAIR),
        ((400, 136, 328), 1, TRIO_PAIR),
        ((136, 400, 328), 1, WIDE_PAIR),
        ((264, 400, 328), 1, LARGE),
        ((136, 600, 328), 1, LARGE_PAIR),
        ((256, 256, 328), 1, FOUR),  # a tile for each block
        ((300, 264, 520), 2, FOUR),  # of the last four only the first one's is inside
        ((8, 136, 1000), 1, FOUR),
        ((520, 136, 328), 1, HIGH_FOUR),
        ((136, 200, 900), 2, SMALL_FOUR),
        ((72, 300, 600), 1, LOW_FOUR),
        ((72, 600, 900), 2, ROW_OF_FOUR),
        ((300, 300, 600), 1, HIGH_ROW_OF_FOUR),
    ],
    ids=str,
)
def test_clusters(monkeypatch, sizes, batches, tile, order):
    """In any order: of blocks, too, of which one may be ahead of the other by as much as their barriers let it."""
    monkeypatch.setenv("SIMT_ORDER", order)
    m, n, k = sizes
    a, b = random(batches, m, k, dtype=torch.float16), random(batches, k, n, dtype=torch.float16)
    run_checked(LIBRARY, "matmul", "persistent", a, b, config=config_of(prepare("matmul", a, b), tile))


@pytest.mark.parametrize(
    "tile",
    [PAIR, HIGH_PAIR, TRIO_PAIR, WIDE_PAIR, LARGE_PAIR, FOUR, SMALL_FOUR, LOW_FOUR, ROW_OF_FOUR, HIGH_ROW_OF_FOUR],
    ids=str,
)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_halves_of_shared_slices(layout, tile):
    """By rows of a box along K, and by boxes across it, or their rows; results that TMA does not write, too."""
    a, b = (LAYOUTS[layout](random(*shape, dtype=torch.float16)) for shape in ((264, 136), (136, 260)))
    if layout == "col":
        a, b = b.T, a.T
    run_checked(LIBRARY, "matmul", "persistent", a, b, config=config_of(prepare("matmul", a, b), tile))


def test_work_of_clusters():
    """L2 sends what both blocks of a pair need once: for 128 x 128 3 of 4 rows, for 256 2 of 3, for 192 4 of 5; for four blocks
    a half. These are on 120 SMs."""
    a = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    call, target = prepare("matmul", a, a), Target.named("h200")
    shares = (({"BM": 128, "BN": 128}, 3 / 4), (BIG, 2 / 3), (HIGH, 2 / 3), (WIDE, 4 / 5), (LOW_TRIO, 4 / 5))
    for tile, share, cluster in (*((*each, 2) for each in shares), (BIG, 1 / 2, 4), (HIGH, 1 / 2, 4)):
        ((alone,), (together,)) = (
            DESIGN.work(call.problem, config_of(call, tile | more, "h200"), target) for more in ({}, {"CLUSTER": cluster})
        )
        per_flop = [(work.fetched - 4096 * 4096 * 2 / work.blocks) / work.flops for work in (alone, together)]
        assert per_flop == pytest.approx([1 / tile["BM"] + 1 / tile["BN"], share * (1 / tile["BM"] + 1 / tile["BN"])])
        assert (together.blocks, alone.blocks) == (120 if cluster == 4 else 132, 132)


def test_clusters_are_whole():
    a = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    (launch,) = launches(a, a, PAIR)
    assert launch.grid == (132,)
    call, fewer = prepare("matmul", a, a), dataclasses.replace(Target.named("h200"), sms=131)
    for config in DESIGN.configs(call.problem, fewer):
        of_an_sm = 2 if config["CONSUMERS"] == 1 and shared_bytes(config) < 113 * 1024 else 1
        assert config["BLOCKS"] == {1: 131 * of_an_sm, 2: 130, 4: 116, 8: 112}[config.get("CLUSTER", 1)], (
            "fours and eights reach 119"
        )
    (launch,) = launches(a[:8], a[:, :384], PAIR)
    assert launch.grid == (6,)
    assert [tensor_map.box[0] for tensor_map in launch.arguments[:2]] == [128, 64]
    (launch,) = launches(a, a[:384].T, HIGH_PAIR)
    assert launch.grid == (64,) and [tensor_map.box[0] for tensor_map in launch.arguments[:2]] == [128, 128]
    (launch,) = launches(a, a[:384].T, HIGH_FOUR)
    assert launch.grid == (64,) and [tensor_map.box[0] for tensor_map in launch.arguments[:2]] == [128, 64]


@pytest.mark.parametrize(
    "matrix, expected",
    [
        (torch.empty(1, 16, 24, dtype=torch.float16), True),
        (torch.empty(1, 24, 16, dtype=torch.float16).transpose(1, 2), False),
        (torch.empty(1, 16, 20, dtype=torch.float16), None),
        (torch.empty(1, 16, 32, dtype=torch.float16)[:, :, 1:25], None),
        (torch.empty(1, 1, 24, dtype=torch.float16).expand(1, 16, 24), None),
        (torch.empty(64, dtype=torch.float16).as_strided((1, 4, 24), (0, 8, 1)), None),
        (torch.empty(3, 16, 32, dtype=torch.int8), True),
        (torch.empty(3, 32, 16, dtype=torch.int8).transpose(1, 2), None),
        (torch.empty(1, 0, 24, dtype=torch.float16), True),
    ],
)
def test_which_operands_tma_reads(matrix, expected):
    assert as_tma_reads(matrix, 1) is expected
    assert as_tma_reads(matrix.transpose(1, 2), 2) is expected


def test_other_operands_are_aligned_first_and_other_results_stored_from_registers():
    a, b = random(70, 37, dtype=torch.float16), random(1, 64, dtype=torch.float16).expand(37, 64)
    *aligned, product = launches(a, b, SMALL)
    assert [launch.expression for launch in aligned] == ["operands::align<uint16_t>"] * 2
    assert product.expression.endswith(", true>")
    (product,) = launches(a[:, :32].contiguous(), random(32, 60, dtype=torch.float16).mT.contiguous().mT, SMALL)
    assert product.expression.endswith(", false>"), "rows of 60 are not multiples of 16 bytes"


def test_the_code_of_what_may_follow_alpha_is_there_only_where_something_does():
    a, b = random(64, 64, dtype=torch.float16), random(64, 64, dtype=torch.float16)

    def scaled(**others):
        (product,) = launches(a, b, SMALL, **others)
        return product.expression.endswith(", true, true>")

    assert scaled() and scaled(alpha=-2.5) and scaled(c=a, beta=0)
    assert not any(scaled(**other) for other in ({"c": a}, {"bias": a[0]}, {"activation": "relu"}))


FOLLOWING = {  # the names of what follows the sums; C and activations with exponentials have code of their own
    "nothing": set(),
    "bias": {"bias"},
    "bias, relu": {"bias", "relu"},
    "bias, gelu": {"bias", "gelu"},
    "c": {"c"},
    "all": {"bias", "c", "silu"},
}


@short(
    lambda tile, following, out_dtype: (
        out_dtype == torch.float16 or (tile == HIGH and following in ("bias, relu", "bias, gelu"))
    )
)
@pytest.mark.parametrize("out_dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("following", FOLLOWING)
@pytest.mark.parametrize("tile", [BIG, HIGH, THREE], ids=["big", "high", "three consumers"])
def test_tiles_of_several_boxes(tile, following, out_dtype):
    """Each box of the result gets its own sums, addends and place, also where only a part of the tile's boxes is inside."""
    m, n, k = (328, 200, 72) if tile == HIGH else (264, 456, 72)
    a, b = (random(*shape, dtype=torch.float16) for shape in ((2, m, k), (2, k, n)))
    c, bias = (random(*shape, dtype=out_dtype) for shape in ((2, m, n), (2 * n,)))
    others, parts = {"out_dtype": out_dtype}, FOLLOWING[following]
    others |= {"bias": bias[::2]} if "bias" in parts else {}
    others |= {"c": c, "beta": -0.5} if "c" in parts else {}
    others["activation"] = next(iter(parts - {"bias", "c"}), None)
    *_, product = launches(a, b, tile, "simt", **others)
    assert product.expression.endswith(", false, true>" if parts else ", true, true>")
    config = config_of(prepare("matmul", a, b, out_dtype=out_dtype), tile)
    run_checked(LIBRARY, "matmul", "persistent", a, b, alpha=1.5, config=config, **others)


def test_refusals():
    half, single = (prepare("matmul", *[torch.empty(8, 8, dtype=dtype)] * 2).problem for dtype in (torch.half, None))
    assert DESIGN.refuses(half, Target.named("h200")) is None and DESIGN.refuses(half, Target.named("simt")) is None
    assert DESIGN.refuses(half, Target.named("a100")) == "it needs wgmma, which only sm_90 has; a100 is sm_80"
    assert DESIGN.refuses(half, Target.named("b200")) == "it needs wgmma, which only sm_90 has; b200 is sm_100"
    assert DESIGN.refuses(single, Target.named("h200")) == "it has no ieee"


def test_it_is_chosen_for_large_products_on_hopper():
    """Where there is no wgmma, one of the two whose warps multiply by mma.sync: in the model, without records, a tie."""
    a = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    hopper, ampere = (cuda_reference.explain("matmul", a, a, target=target)["design"] for target in ("h200", "a100"))
    assert hopper == "persistent" and ampere in ("pipelined", "split_k")


def test_configs_fit_the_target():
    call = prepare("matmul", *(torch.empty(4096, 4096, dtype=torch.float16, device="meta") for _ in range(2)))
    target = Target.named("h200")
    for config in DESIGN.configs(call.problem, target):
        (launch,) = DESIGN.launches(call.problem, config, *call.parts[0])
        two = config["CONSUMERS"] == 1 and shared_bytes(config) < 113 * 1024
        blocks = 120 if config.get("CLUSTER", 1) >= 4 else 264 if two else 132
        assert launch.shared_bytes <= target.shared_per_block and launch.grid == (blocks,)
        assert not two or 2 * (launch.shared_bytes + 1024) <= target.shared_per_sm
    first = next(iter(DESIGN.configs(call.problem, target)))
    assert {first["BM"], first["BN"]} == {128, 256}


def test_half_sums_are_less_exact():
    """A kernel that ignored `accumulate` would fail here."""
    a, b = random(64, 512, dtype=torch.float16), random(512, 64, dtype=torch.float16)
    _, in_half = run_checked(LIBRARY, "matmul", "persistent", a, b, accumulate="fp16")
    _, in_float = run_checked(LIBRARY, "matmul", "persistent", a, b)
    assert in_float.error < in_half.error / 2


BIG_PAIR = BIG | {"CLUSTER": 2}


def code_of(launch):
    """The machine code of a launch for Hopper, in which wgmmas are asynchronous."""
    compiled = nvcc.compiled("90a", [launch.source.header], [launch.expression], "-Xptxas", "-v")
    assert "serialized" not in compiled.said and "setmaxnreg" not in compiled.said, (
        "C7510 to C7514, C7508: ptxas serialised wgmma or ignored setmaxnreg"
    )
    (code,) = sass.read(compiled.cubin).values()
    return code


SLICES = 4  # of a round of the loop
FAST = {"accumulate": "fast", "out_dtype": torch.float32}
# (dtype, options, config, layout of B) -> the instruction, how many per slice, copies per slice, of which to both blocks
CODE = {
    "fp16": (torch.float16, {}, BIG, "row", "HGMMA.64x256x16.F32", 4, 5, 0),
    "bf16, B along K": (torch.bfloat16, {}, BIG, "col", "HGMMA.64x256x16.F32.BF16", 4, 2, 0),
    "fp16, gelu": (torch.float16, {"activation": "gelu"}, BIG, "row", "HGMMA.64x256x16.F32", 4, 5, 0),
    "fp16 to fp32": (torch.float16, {"out_dtype": torch.float32}, BIG, "row", "HGMMA.64x256x16.F32", 4, 5, 0),
    "fp16, high": (torch.float16, {}, HIGH, "row", "HGMMA.64x128x16.F32", 8, 3, 0),
    "fp16 in fp16": (torch.float16, {"accumulate": "fp16"}, BIG, "row", "HGMMA.64x256x16.F16", 4, 5, 0),
    "tf32": (torch.float32, {"precision": "tf32"}, BIG, "row", "HGMMA.64x256x8.F32.TF32", 4, 2, 0),
    "int8": (torch.int8, {}, BIG, "col", "IGMMA.64x256x32.S8.S8", 4, 2, 0),
    "uint8": (torch.uint8, {}, BIG, "col", "IGMMA.64x256x32.U8.U8", 4, 2, 0),
    "e4m3": (torch.float8_e4m3fn, FAST, BIG, "col", "QGMMA.64x256x32.F32.E4M3.E4M3", 4, 2, 0),
    "e5m2": (torch.float8_e5m2, FAST, BIG, "col", "QGMMA.64x256x32.F32.E5M2.E5M2", 4, 2, 0),
    "fp16, three": (torch.float16, {}, THREE, "row", "HGMMA.64x192x16.F32", 4, 4, 0),
    "fp16, three, gelu": (torch.float16, {"activation": "gelu"}, THREE, "row", "HGMMA.64x192x16.F32", 4, 4, 0),
    "fp16, 192 sums, gelu": (torch.float16, {"activation": "gelu"}, LARGE, "row", "HGMMA.64x192x16.F32", 8, 4, 0),
    "fp16 to fp32, three, gelu": (
        *(torch.float16, {"out_dtype": torch.float32, "activation": "gelu"}),
        *(THREE, "row", "HGMMA.64x192x16.F32", 4, 4, 0),
    ),
    "tf32, three": (torch.float32, {"precision": "tf32"}, LOW_TRIO, "row", "HGMMA.64x128x8.F32.TF32", 4, 2, 0),
    "fp16, pairs": (torch.float16, {}, BIG_PAIR, "row", "HGMMA.64x256x16.F32", 4, 3, 2),
    "fp16, B along K, pairs": (torch.float16, {}, BIG_PAIR, "col", "HGMMA.64x256x16.F32", 4, 2, 1),
    "fp16, high pairs": (torch.float16, {}, HIGH_PAIR, "row", "HGMMA.64x128x16.F32", 8, 3, 1),
    "fp16, three, pairs": (torch.float16, {}, TRIO_PAIR, "col", "HGMMA.64x128x16.F32", 4, 2, 1),
    "fp16, wide pairs": (torch.float16, {}, WIDE_PAIR, "col", "HGMMA.64x192x16.F32", 4, 2, 1),
    "tf32, pairs": (torch.float32, {"precision": "tf32"}, BIG_PAIR, "row", "HGMMA.64x256x8.F32.TF32", 4, 2, 1),
}


@short(lambda kind: kind == "uint8")
@nvcc.needed
@pytest.mark.parametrize("kind", CODE)
def test_machine_code(kind):
    """No waits between the wgmmas of a slice, nor for descriptors on their way to uniform registers, no spills, consistent
    register counts, and no code but what the call needs."""
    dtype, options, config, layout, instruction, count, copies, to_both = CODE[kind]
    a, b = (torch.empty(4096, 4096, dtype=dtype, device="meta") for _ in range(2))
    *_, launch = launches(a, b if layout == "row" else b.t(), config, **options)
    code = code_of(launch)
    loop = code.hot_loop()
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == SLICES * count
    assert sass.count(loop, ("WARPGROUP.ARRIVE",)) == sass.count(loop, ("WARPGROUP.DEPBAR",)) == SLICES
    assert sass.count(loop, ("R2UR",)) == 0
    assert code.stack_bytes == 0
    assert sass.count(loop, ("MEMBAR",)) == 0 and not any(
        "MEMBAR" in text and ".CTA" not in text for _, text in code.instructions
    )
    looped = "activation" in options  # all that may follow, in one more box's code; what is short is in that of each, as is C
    assert len(code.instructions) <= (5800 if looped else 1500), "exponentials once, not for each sum"
    assert loop.total() <= 60 * SLICES, f"{loop.total()} instructions: {loop}"
    opcodes = [text.split()[0] for _, text in code.instructions]
    assert sum(opcode.startswith("UTMALDG.3D") for opcode in opcodes) == copies + looped, "of slices, and of C"
    assert sum(opcode.startswith("UTMALDG.3D.MULTICAST") for opcode in opcodes) == to_both
    in_halves = options.get("out_dtype", dtype).itemsize == 2
    consumers = 3 if config["BM"] == 192 else 2
    boxes = config["BM"] // consumers // 64 * config["BN"] // (64 if in_halves else 32) * (1 + looped)
    loops = looped * (2 if in_halves else 1)
    assert sum(opcode.startswith("UTMASTG.3D") for opcode in opcodes) == boxes + loops, (
        "of 64 rows of 128 bytes, of a consumer's tile, with C and without; of a loop over them one, of quick ones another"
    )
    sums = config["BM"] * config["BN"] // (128 * consumers)
    # In a loop that of half a box, of three consumers of two tiles; of quick activations all of it where registers are left
    stored = (2 if sums > 160 else 4) * boxes + looped * ((2 if consumers == 2 else 1) + (4 if sums == 128 else 2))
    assert sum(opcode.startswith("STSM.16.M88.4") for opcode in opcodes) == (stored if in_halves else 0)
    assert sum(opcode.startswith("USETMAXREG") for opcode in opcodes) == 2
    of_pairs = (24, 240) if sums > 160 else (40, 232)
    at_first, (producer, consumer) = code.registers, {2: of_pairs, 3: (32, 160)}[consumers]
    assert at_first * (consumers + 1) == producer + consumers * consumer, "otherwise a consumer waits for its registers forever"


@thorough
@nvcc.needed
@pytest.mark.parametrize(
    "dtype, options",
    [(torch.float16, {}), (torch.float16, {"out_dtype": torch.float32}), (torch.float32, {"precision": "tf32"})],
    ids=["fp16", "fp16 to fp32", "tf32"],
)
@pytest.mark.parametrize("tile", [LARGE, LARGE_PAIR], ids=["alone", "pairs"])
def test_192_sums_of_a_thread_fit_beside_a_box(tile, dtype, options):
    """With the registers that the producer does without; the loop spills nothing, and products are asynchronous."""
    a = torch.empty(4096, 4096, dtype=dtype, device="meta")
    (launch,) = launches(a, a.t(), tile, **options)
    code = code_of(launch)
    k, loop = 8 if dtype == torch.float32 else 16, code.hot_loop()
    assert sass.count(loop, (f"HGMMA.64x192x{k}.F32" + ".TF32" * (k == 8),)) == 8 * SLICES
    assert code.stack_bytes <= 32 and sass.count(loop, sass.LOCAL) == 0
    assert code.registers == 168 and 24 + 2 * 240 == 3 * 168
    opcodes = [text.split()[0] for _, text in code.instructions if text.startswith("UTMALDG.3D")]
    assert [opcode.startswith("UTMALDG.3D.MULTICAST") for opcode in sorted(opcodes)] == [False, tile == LARGE_PAIR]


@thorough
@nvcc.needed
@pytest.mark.parametrize("tile", [SMALL_FOUR, LOW_FOUR], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_small_tiles_in_fours(layout, tile):
    """Each block requests a half of both slices, for itself and its neighbour."""
    a = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    (launch,) = launches(a, LAYOUTS[layout](a), tile)
    code = code_of(launch)
    assert sass.count(code.hot_loop(), (f"HGMMA.64x{tile['BN']}x16.F32",)) == 4 * SLICES and code.stack_bytes == 0
    opcodes = [text.split()[0] for _, text in code.instructions if text.startswith("UTMALDG.3D")]
    assert len(opcodes) == 2 and all(opcode.startswith("UTMALDG.3D.MULTICAST") for opcode in opcodes)


@thorough
@nvcc.needed
@pytest.mark.parametrize("tile", [SMALL, {"BM": 128, "BN": 64, "CONSUMERS": 1}, {"BM": 64, "BN": 128}], ids=str)
def test_two_small_blocks_fit_an_sm(tile):
    """With their registers, too, and none of them spilled. Where more follows than alpha, or slices of fp8 have sums of their
    own, a block has the registers of an SM, and there are as many of them."""
    a = torch.empty(4096, 4096, dtype=torch.float16, device="meta")
    (launch,) = launches(a, a.t(), tile)
    code = code_of(launch)
    assert launch.grid == (264,) and code.registers * 256 * 2 <= 65536 and code.stack_bytes == 0
    (launch,) = launches(a, a.t(), tile, activation="gelu")
    assert launch.grid == (132,) and code_of(launch).stack_bytes == 0
    eighth = a.to(torch.float8_e4m3fn)
    (launch,) = launches(eighth, eighth.t(), tile)
    assert launch.grid == (132,) and code_of(launch).stack_bytes == 0
