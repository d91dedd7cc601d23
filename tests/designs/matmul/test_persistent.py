"""The Triton design persistent: what TMA reads as it lies, and rounds to tf32 on the way; splits of K."""

import types

import pytest
import torch

from tests.designs.matmul.exact import computed, integers, of_four_parts
from tests.harness import DEVICES, available_on, prepare, random, run_checked, short, transposed
from tritonkernels import backend
from tritonkernels.config import config_of
from tritonkernels.errors import LaunchError
from tritonkernels.language import descriptor
from tritonkernels.launch import LIBRARY, TritonLaunch
from tritonkernels.matmul import persistent
from tritonkernels.operations.gemm.split_counts import splits_that_fill
from tritonkernels.target import Target

ON = pytest.mark.parametrize("device", DEVICES)
TF32 = {"precision": "tf32"}


def launched(a, b):
    call = prepare("matmul", a, b, **TF32)
    config = next(iter(persistent.DESIGN.configs(call.problem, LIBRARY.target(a.device))))
    return [launch.name for launch in persistent.DESIGN.launches(call.problem, config, *call.parts[0])]


@ON
@pytest.mark.parametrize("m, n, k", [(8, 8, 64), (72, 56, 100), (136, 264, 260), (300, 132, 36)])
def test_fp32_along_k_is_rounded_to_tf32_without_a_copy(device, m, n, k):
    available_on(LIBRARY, device)
    a, b = random(m, k, device=device), transposed(random(k, n, device=device))
    assert launched(a, b) == ["persistent"]
    run_checked(LIBRARY, "matmul", "persistent", a, b, **TF32)
    eye = torch.eye(k, device=device)
    for operands, whole in (((a, eye), a), ((eye, b), b)):
        one, _ = run_checked(LIBRARY, "matmul", "persistent", *operands, **TF32)
        assert ((one - whole).abs() <= 2.0**-11 * whole.abs()).all(), "to nearest: 2^-10 would do if it were chopped"
        assert not (one.view(torch.int32) & 0x1FFF).any(), "13 bits of the mantissa are gone"


@ON
@pytest.mark.parametrize("cols", [300, 301])
def test_a_program_walks_several_tiles(device, cols):
    """Results that TMA writes, and those that it cannot. The epilogue counts the tiles again."""
    available_on(LIBRARY, device)
    a, b = random(2, 200, 40, dtype=torch.float16, device=device), random(2, 40, cols, dtype=torch.float16, device=device)
    config = {"BLOCK_M": 64, "BLOCK_N": 128, "SPLIT_K": 1}
    _, chosen = LIBRARY.choose(prepare("matmul", a, b).problem, LIBRARY.target(a.device), "persistent", config)
    assert device == "cuda" or chosen.kwargs["PROGRAMS"] < 2 * 4 * 3
    run_checked(LIBRARY, "matmul", "persistent", a, b, config=config)


@ON
def test_the_operand_across_k_is_packed_alone(device):
    available_on(LIBRARY, device)
    a, b = random(2, 72, 100, device=device), random(2, 100, 56, device=device)
    for one, other, expected in ((a, b, 1), (transposed(a), transposed(b), 1), (transposed(a), b, 2)):
        assert launched(one, other) == ["pack"] * expected + ["persistent"]
        run_checked(LIBRARY, "matmul", "persistent", one, other, **TF32)
        run_checked(LIBRARY, "matmul", "persistent", one, other, bias=random(56, device=device), activation="relu", **TF32)


def test_both_are_packed_where_descriptors_cannot_round(monkeypatch):
    a, b = random(72, 100), transposed(random(100, 56))
    problem = prepare("matmul", a, b, **TF32).problem
    for can, packed in ((True, False), (False, True)):
        monkeypatch.setattr(persistent, "can_round", lambda can=can: can)
        config = next(persistent.configs(problem, Target.named("h200")))
        assert persistent.packs(problem, config) == (packed, packed)
        assert launched(a, b) == ["pack"] * (2 * packed) + ["persistent"]
        run_checked(LIBRARY, "matmul", "persistent", a, b, **TF32)
        assert len(persistent.DESIGN.work(problem, config, Target.named("h200"))) == 1 + 2 * packed


def test_the_types_of_tensor_maps_in_triton_3_6():
    """For the descriptors that ask for it, in the order of the arguments; nothing runs where there are no tensor maps."""
    t = torch.empty(4, 8)
    plain, rounding = descriptor.describe(t, [4, 8]), descriptor.describe(t, [4, 8], to_tf32=True)
    assert descriptor.rounds(rounding) and not descriptor.rounds(plain) and not descriptor.rounds(t)
    fp32 = 7
    maps = [{"elem_type": fp32, "swizzle": 3} for _ in range(3)]
    descriptor.set_types(types.SimpleNamespace(tensordesc_meta=maps), [plain, 5, rounding, t, rounding])
    assert [own["elem_type"] for own in maps] == [fp32, descriptor.TF32, descriptor.TF32]
    for none in (None, [], maps[:1]):
        with pytest.raises(LaunchError, match="tensor maps of 2 descriptors"):
            descriptor.set_types(types.SimpleNamespace(tensordesc_meta=none), [plain, rounding])


@pytest.mark.parametrize("has_field, to_tf32", [(False, True), (False, False), (True, True)])
def test_the_types_are_set_before_the_first_launch(monkeypatch, has_field, to_tf32):
    """Where Triton has no field for it, and something rounds."""
    done = []
    metadata = types.SimpleNamespace(tensordesc_meta=[{"elem_type": 7}])

    class Kernel:
        fn = test_the_types_are_set_before_the_first_launch  # what Triton hashes

        def warmup(self, **_):
            done.append("compiled")
            return types.SimpleNamespace(metadata=metadata)

        def __getitem__(self, grid):
            return lambda **_: done.append(metadata.tensordesc_meta[0]["elem_type"])

    launch = TritonLaunch.__new__(TritonLaunch)
    launch.kernel, launch.grid = Kernel(), (1,)
    launch.values = {"a": descriptor.describe(torch.empty(4, 8), [4, 8], to_tf32=to_tf32), "K": 8}
    monkeypatch.setattr(descriptor, "has_field", lambda: has_field)
    monkeypatch.setattr(backend, "name", lambda: "gpu")
    monkeypatch.setattr(TritonLaunch, "options", {})
    monkeypatch.setattr(TritonLaunch, "_launched", lambda self, compiled: compiled)
    launch.run()
    assert done == (["compiled", descriptor.TF32] if to_tf32 and not has_field else [7])


def test_what_triton_can(monkeypatch):
    """Its field; or its table of types, as the launcher of 3.6 has it; or nothing."""
    known = {"field": (True, {}), "table": (False, {7: 7, 11: 11}), "nothing": (False, {}), "another table": (False, {11: 12})}
    monkeypatch.setattr(descriptor.backend, "name", lambda: "gpu")
    for title, (field, table) in known.items():
        monkeypatch.setattr(descriptor, "has_field", lambda field=field: field)
        monkeypatch.setattr(descriptor, "_host_types", lambda table=table: table)
        assert descriptor.can_round.__wrapped__() is (title in ("field", "table"))


def split_config(problem, target, splits, **more):
    """The design's first, with so many splits, and no more stages than leave room for sums in fp32."""
    config = next(iter(persistent.configs(problem, target)))
    return config_of(config.kwargs | {"SPLIT_K": splits} | more, config.num_warps, min(3, config.num_stages))


@ON
@pytest.mark.parametrize(
    "m, n, k, layout, packed",
    [
        (40, 1032, 72, "row", (True, False)),  # B is read by one row of tiles
        (1032, 40, 72, "col", (False, True)),
        (1032, 1032, 72, "row", (True, True)),
        (1032, 1032, 72, "col", (True, True)),
        (1032, 1032, 64, "row", (False, True)),  # A's rows, along K, are a line each
        (1040, 1040, 80, "row", (False, False)),  # whole sectors
        (1032, 1032, 64, "col", (True, False)),
        (1032, 40, 72, "row", (False, False)),
    ],
)
def test_operands_that_many_tiles_read_are_packed_in_whole_lines(device, m, n, k, layout, packed):
    available_on(LIBRARY, device)
    a, b = (random(*shape, dtype=torch.float16, device=device) for shape in ((m, k), (k, n)))
    a, b = (transposed(a), transposed(b)) if layout == "col" else (a, b)
    call, target = prepare("matmul", a, b), Target.named("h100")
    found = [config for config in persistent.configs(call.problem, target) if config.kwargs.get("IN_LINES")]
    assert bool(found) is any(packed)
    for config in found[-1:]:
        config = config_of(config.kwargs | {"PROGRAMS": 3}, config.num_warps, config.num_stages)
        launch, result = computed(persistent.DESIGN, config, a, b)
        for operand, is_packed in zip((launch.values["a"], launch.values["b"]), packed):
            assert (operand.strides[-2] * 2 % 128 == 0) is (is_packed or k == 64)
        assert (result.double() - a.double() @ b.double()).abs().max() < 2**-9 * k
        *copies, product = persistent.WORK(call.problem, config, target)
        (as_it_lies,) = persistent.WORK(call.problem, config_of(config.kwargs | {"IN_LINES": False}, config.num_warps), target)
        assert len(copies) == sum(packed) and product.fetched < as_it_lies.fetched


@ON
@short(lambda k, splits: (k, splits) in ((8, 2), (200, 3), (1000, 5)))
@pytest.mark.parametrize("splits", [2, 3, 5])
@pytest.mark.parametrize("k", [8, 64, 200, 328, 1000])
def test_splits_add_up_all_of_k(device, k, splits):
    """Exactly, of integers, also where the last splits have no products; with all that may follow, of a batch."""
    available_on(LIBRARY, device)
    for m, n in ((72, 136), (264, 24)):
        a, b, c = (integers(2, *shape, device=device) for shape in ((m, k), (k, n), (m, n)))
        options = {"c": c.float(), "beta": 0.5, "bias": c[0, 0].float(), "activation": "relu", "out_dtype": torch.float32}
        problem = prepare("matmul", a, b, **options).problem
        config = split_config(problem, LIBRARY.target(a.device), splits)
        launch, result = computed(persistent.DESIGN, config, a, b, **options)
        assert launch.name == "add_splits"
        assert torch.equal(result.double(), (a.double() @ b.double() + c.double() / 2 + c[0, 0].double()).relu())


@ON
@pytest.mark.parametrize(
    "dtype, more", [(torch.int8, {}), (torch.float16, {"accumulate": "fp16"}), (torch.float32, TF32)], ids=str
)
def test_splits_of_other_types(device, dtype, more):
    available_on(LIBRARY, device)
    a, b = integers(72, 512, device=device).to(dtype), transposed(integers(512, 40, device=device)).to(dtype)
    problem = prepare("matmul", a, b, **more).problem
    config = split_config(problem, LIBRARY.target(a.device), 3)
    _, result = computed(persistent.DESIGN, config, a, b, **more)
    assert torch.equal(result.double(), a.double() @ b.double())


@ON
def test_splits_are_added_in_the_order_of_k(device):
    available_on(LIBRARY, device)
    target = LIBRARY.target(torch.device(device))
    a, b = of_four_parts(64, device=device)
    a, b = a.repeat(70, 1), b.repeat(40, 1).t()
    config = split_config(prepare("matmul", a, b, out_dtype=torch.float32).problem, target, 4, BLOCK_K=64)
    _, result = computed(persistent.DESIGN, config, a, b, out_dtype=torch.float32)
    assert result.unique().tolist() == [2.0]


@pytest.mark.parametrize(
    "tiles, k, expected",
    [
        (36, 8960, [3, 7, 11]),
        (50, 8960, [2, 5]),
        (60, 8960, [2]),
        (90, 8960, [4]),
        (140, 8960, [2]),
        (132, 8960, []),
        (200, 8960, []),
        (4, 65536, [33]),
        (1, 65536, [132]),
        (1, 9000, [35]),
        (36, 1024, [3]),
        (36, 512, [2]),
        (36, 511, []),
        (0, 8960, []),
    ],
)
def test_splits_fill_waves(tiles, k, expected):
    """With 132 programs, by fewer splits if more take as long; none has less than 256 products."""
    assert list(splits_that_fill(tiles, k, 132)) == expected


def test_the_model_counts_the_pieces_and_their_addition():
    target = Target.named("h200")
    a, b = (torch.empty(*shape, dtype=torch.float16, device="meta") for shape in ((768, 8960), (8960, 768)))
    problem = prepare("matmul", a, b).problem
    of_tile = [
        c
        for c in persistent.configs(problem, target)
        if (c.kwargs["BLOCK_M"], c.kwargs["BLOCK_N"], c.num_warps) == (128, 128, 8)
    ]
    works = {c.kwargs["SPLIT_K"]: persistent.DESIGN.work(problem, c, target) for c in of_tile}
    assert {splits: (len(work), work[0].blocks) for splits, work in works.items()} == {
        1: (1, 36),
        3: (2, 108),
        7: (2, 132),
        11: (2, 132),
    }
    slices = {splits: work[0].flops / (2 * 128 * 128 * 64) for splits, work in works.items()}
    assert slices == {1: 140, 3: 47, 7: 2 * 20, 11: 3 * 13}
