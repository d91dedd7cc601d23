"""gemm's designs whose blocks share tiles, split_k of both packages and CUDA's stream_k: one launch, in which the last block of
a tile adds its parts in the order of K. Sums of small integers are exact, so results must be equal."""

import pytest
import torch

import cuda_reference.launch
import tritonkernels.launch
from tests.harness import (
    DEVICES,
    available_on,
    bits,
    poisoned,
    prepare,
    random,
    run_checked,
    short,
    small_integers,
    transposed,
)
from tritonkernels.design import as_dict
from tritonkernels.target import Target

H200 = Target.named("h200")
PACKAGES = {library.package: library for library in (cuda_reference.launch.LIBRARY, tritonkernels.launch.LIBRARY)}
SPLIT_K, STREAM_K = (("cuda_reference", "split_k"), ("tritonkernels", "split_k")), ("cuda_reference", "stream_k")
on_devices = pytest.mark.parametrize("device", DEVICES)


def the(package, name):
    return next(design for design in PACKAGES[package].designs("gemm") if design.name == name)


def space(package, name="split_k", m=64, n=64, k=2**20):
    """The configs of so few tiles that any number of splits is legal, one of each size of tiles and number of splits."""
    problem = prepare("gemm", torch.empty(m, k, device="meta"), torch.empty(k, n, device="meta")).problem
    return list(the(package, name).configs(problem, H200))


def tile_of(config):
    numbers = as_dict(config)
    return [numbers.get(short, numbers.get(long)) for short, long in (("BM", "BLOCK_M"), ("BN", "BLOCK_N"), ("BK", "BLOCK_K"))]


def splits_of(config):
    numbers = as_dict(config)
    return numbers.get("SPLITS", numbers.get("SPLIT_K"))


def named(config):
    return "x".join(map(str, (*tile_of(config), splits_of(config) or as_dict(config)["BLOCKS"])))


def numbers_of(launch):
    """{name: argument} of a launch of either package; of CUDA's the workspace and the counters."""
    if hasattr(launch, "values"):
        return launch.values
    partial, counters = launch.arguments[-4:-2] if "stream_k" in launch.expression else launch.arguments[-3:-1]
    return {"partial": partial, "counters": counters}


def computed(package, name, config, a, b, c=None, times=1, **options):
    """(the only launch, the result) of a call whose result and workspace hold NaN before."""
    out, buffer, _ = poisoned((a.shape[0], b.shape[1]), a.dtype, a.device)
    call = prepare("gemm", a, b, c, out=out, **options)
    (launch,) = the(package, name).launches(call.problem, config, *call.parts[0])
    given = numbers_of(launch)
    for _ in range(times):  # the counters are zero again after each
        out.fill_(torch.nan)
        if given["partial"] is not None:
            given["partial"].fill_(torch.nan)
        launch.run()
    assert given["counters"] is None or not given["counters"].any()
    around = torch.ones_like(buffer, dtype=torch.bool)
    around.as_strided(out.shape, out.stride(), out.storage_offset()).fill_(False)
    assert buffer[around].isnan().all(), "something around the result was written"
    return launch, out


def every_config():
    return [
        pytest.param(package, config, id=f"{package}-{named(config)}") for package, _ in SPLIT_K for config in space(package)
    ]


@short(lambda config: splits_of(config) in (2, 16, 128))
@pytest.mark.parametrize("package, config", every_config())
@on_devices
def test_at_the_edges_of_tiles(device, package, config):
    """One element more and one less than a tile, and of K than a slice and than its splits."""
    available_on(PACKAGES[package], device)
    (bm, bn, bk), splits = tile_of(config), splits_of(config)
    for m, n, k in ((bm - 1, bn + 1, bk * splits + 1), (bm + 1, bn, bk * splits - 1), (1, bn - 1, bk + 1), (bm, 3, 1)):
        a, b, c = (small_integers(*shape, device=device) for shape in ((m, k), (k, n), (m, n)))
        _, result = computed(package, "split_k", config, a, b, c, alpha=0.5, beta=-1.5)
        assert torch.equal(result.double(), 0.5 * (a.double() @ b.double()) - 1.5 * c.double()), (m, n, k)


@pytest.mark.parametrize("package, name", [*SPLIT_K, STREAM_K])
@on_devices
def test_without_products(device, package, name):
    """K = 0 and alpha = 0 leave beta C; twice, for the counters."""
    available_on(PACKAGES[package], device)
    config, c = space(package, name)[0], small_integers(70, 37, device=device)
    for k, alpha in ((0, 1.0), (9, 0.0)):
        a, b = torch.full((70, k), torch.nan, device=device), torch.full((k, 37), torch.nan, device=device)
        _, result = computed(package, name, config, a, b, c, alpha=alpha, beta=2.0, times=2)
        assert torch.equal(result, 2 * c)


@pytest.mark.parametrize("package, name", [*SPLIT_K, STREAM_K])
def test_any_strides(package, name):
    config = space(package, name)[-1]
    a, b = transposed(small_integers(70, 300)), small_integers(600, 90)[::2, ::2]
    c = transposed(small_integers(70, 45))
    _, result = computed(package, name, config, a, b, c, beta=0.5)
    assert torch.equal(result.double(), a.double() @ b.double() + 0.5 * c.double())


@pytest.mark.parametrize("slices, splits", [(0, 1), (1, 1), (3, 3), (4, 4), (5, 3), (9, 3)])
def test_no_split_is_empty(slices, splits):
    """Where 4 were asked for, with the same number of slices each but for the last."""
    for config in filter(of_four, space("cuda_reference")):
        k = tile_of(config)[2] * slices
        launch, _ = computed("cuda_reference", "split_k", config, small_integers(5, k), small_integers(k, 7))
        assert launch.grid[1] == splits


def of_four_parts(depth, device, parts=4, own=(0, 1, 2, 3)):
    """a, b with a product in four of so many parts of K: 1, 2^26, in which it is lost, -2^26, and 2."""
    a, b = torch.zeros(parts, depth, device=device), torch.zeros(parts, depth, device=device)
    a[own, 0] = torch.tensor([1.0, 2.0**13, -(2.0**13), 2.0], device=device)
    b[own, 0] = torch.tensor([1.0, 2.0**13, 2.0**13, 1.0], device=device)
    return a.flatten().repeat(70, 1), b.flatten().repeat(40, 1).t()


def of_four(config):
    return splits_of(config) == 4


@pytest.mark.parametrize("package, name", SPLIT_K)
@on_devices
def test_splits_are_added_in_the_order_of_k(device, package, name):
    available_on(PACKAGES[package], device)
    for config in filter(of_four, space(package)):
        _, result = computed(package, name, config, *of_four_parts(tile_of(config)[2], device), times=2)
        assert result.unique().tolist() == [2.0], config


OF_GROUPS = {"in a group": (8, 9, 14, 15), "in each": (3, 8, 23, 24), "in the last": (24, 25, 26, 27)}


@pytest.mark.parametrize("own", OF_GROUPS.values(), ids=OF_GROUPS)
@on_devices
def test_many_parts_are_added_in_groups_of_eight(device, own):
    """28 of them, the last four by themselves, of split_k and of stream_k's only tile, whose blocks have a slice each."""
    available_on(PACKAGES["cuda_reference"], device)
    config = next(c for c in space("cuda_reference") if tile_of(c)[:2] == [32, 32])
    a, b = of_four_parts(tile_of(config)[2], device, 28, own)
    launch, result = computed("cuda_reference", "split_k", config | {"SPLITS": 28}, a[:32], b[:, :32], times=2)
    assert launch.grid == (1, 28) and result.unique().tolist() == [2.0]
    config = space(*STREAM_K)[-1] | {"BLOCKS": 28}
    a, b = of_four_parts(tile_of(config)[2], device, 28, own)
    launch, result = computed(*STREAM_K, config, a[:64], b, times=2)
    assert launch.arguments[-1] == 28 and result.unique().tolist() == [2.0]


@short(lambda config, blocks: blocks in (3, 4))
@pytest.mark.parametrize("blocks", (1, 2, 3, 4, 7, 16))
@pytest.mark.parametrize("config", space(*STREAM_K), ids=named)
@on_devices
def test_runs_cut_tiles_anywhere(device, config, blocks):
    """Fewer tiles than blocks, as many, and more, of 1, 2 and 5 slices; fewer slices than blocks."""
    available_on(PACKAGES["cuda_reference"], device)
    bm, bn, bk = tile_of(config)
    for m, n, k in ((bm - 1, bn + 1, 5 * bk - 1), (bm + 1, 2 * bn + 3, 2 * bk), (2 * bm + 1, 2 * bn - 1, bk), (bm, bn, 2 * bk)):
        a, b, c = (small_integers(*shape, device=device) for shape in ((m, k), (k, n), (m, n)))
        _, result = computed(*STREAM_K, config | {"BLOCKS": blocks}, a, b, c, alpha=0.5, beta=-1.5, times=2)
        assert torch.equal(result.double(), 0.5 * (a.double() @ b.double()) - 1.5 * c.double()), (m, n, k)


@pytest.mark.parametrize("config", space(*STREAM_K)[1:], ids=named)
@on_devices
def test_parts_of_runs_are_added_in_the_order_of_k(device, config):
    """With two tiles, and a slice for each block. The largest tiles have two parts at most: their order does not matter."""
    available_on(PACKAGES["cuda_reference"], device)
    bm, _, bk = tile_of(config)
    a, b = of_four_parts(bk, device)
    _, result = computed(*STREAM_K, config | {"BLOCKS": 8}, a[:1].repeat(2 * bm, 1), b, times=2)
    assert result.unique().tolist() == [2.0]


def test_no_block_adds_up_more_than_it_can_while_a_kernel_starts():
    """256 KB; of stream_k two parts, which are one each of two blocks, however large."""
    from cuda_reference.gemm.stream_k import cut

    for package, _ in SPLIT_K:
        for config in space(package):
            bm, bn, _ = tile_of(config)
            splits = splits_of(config)
            if package == "cuda_reference" and splits > 16:
                splits = 8 + -(-splits // 8)  # of a group, then groups
            assert 4 * bm * bn * splits <= 2**18
    problem = prepare("gemm", torch.empty(200, 2**16, device="meta"), torch.empty(2**16, 200, device="meta")).problem
    for config in space(*STREAM_K):
        whole, left, sharers = cut(problem, config)
        assert whole == 0 and left < sharers <= left * {256: 2, 128: 4, 64: 64}[config["BN"]]


@pytest.mark.parametrize("m, n", [(64, 512), (16, 4096), (16, 1024), (512, 32), (64, 64), (32, 128)])
@pytest.mark.parametrize("package", PACKAGES)
def test_few_tiles_can_fill_the_gpu(package, m, n):
    """Without a tile that is mostly beyond the edge."""
    configs = [(*tile_of(config), splits_of(config)) for config in space(package, m=m, n=n, k=2**16)]
    blocks = [-(-m // bm) * -(-n // bn) * splits for bm, bn, _, splits in configs if bm <= max(16, m) and bn <= max(32, n)]
    assert max(blocks) >= 1.9 * H200.sms


@pytest.mark.parametrize("order", ["1", "2", "3"])
@pytest.mark.parametrize("name", ["split_k", "stream_k"])
def test_the_same_bits_in_any_order_of_blocks(monkeypatch, name, order):
    a, b, c = random(70, 300), random(300, 200), random(70, 200)
    library = PACKAGES["cuda_reference"]

    def result(order):
        monkeypatch.setenv("SIMT_ORDER", order)
        return bits(run_checked(library, "gemm", name, a, b, c=c, beta=0.5)[0])

    assert torch.equal(result(order), result("4"))


@pytest.mark.parametrize("name, config", [("split_k", c) for c in space("cuda_reference") if of_four(c)] + [("stream_k", None)])
def test_accesses(name, config):
    """No races; slices and parts without bank conflicts or half-used sectors."""
    from cuda_reference.trace import trace

    config = config or space(*STREAM_K)[-1] | {"BLOCKS": 3}
    bm, bn, bk = tile_of(config)
    call = prepare("gemm", random(bm, 5 * bk), random(5 * bk, bn), random(bm, bn), beta=0.5)
    (traced,) = trace(*the("cuda_reference", name).launches(call.problem, config, *call.parts[0]))
    assert traced.races == ()
    wide = [access for access in traced.accesses if access.requests > 1]
    assert [str(access) for access in wide if access.units != access.ideal_units] == []


def test_the_work_counts_one_kernel():
    problem = prepare("gemm", torch.empty(64, 2**14, device="meta"), torch.empty(2**14, 512, device="meta")).problem
    for package, name in (*SPLIT_K, STREAM_K):
        for config in space(package, name, 64, 512, 2**14):
            (work,) = the(package, name).work(problem, config, H200)
            assert work.dram == pytest.approx(4 * (64 * 2**14 + 2**14 * 512 + 64 * 512))


@pytest.mark.parametrize("k", (1, 8, 33, 64, 100))
@pytest.mark.parametrize("op", ("gemm", "matmul"))
@pytest.mark.parametrize("package", PACKAGES)
def test_no_more_splits_than_slices(package, op, k):
    """But two, of designs that have no fewer."""
    problem = prepare(op, torch.empty(5661, k, device="meta"), torch.empty(k, 1667, device="meta")).problem
    for design in PACKAGES[package].designs(op):
        if design.is_lesson or design.refuses(problem, H200):
            continue
        for config in design.configs(problem, H200):
            slice = tile_of(config)[2] or as_dict(config).get("SLICE", 0) // problem.dtype.itemsize
            assert not slice or (splits_of(config) or 1) <= max(2, -(-k // slice)), design.name
