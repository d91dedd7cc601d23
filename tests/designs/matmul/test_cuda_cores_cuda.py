"""cuda_cores: the IEEE fp32 products of CUDA's matmul, beyond the tests of every design (tests/designs/test_designs.py)."""

from pathlib import Path

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from cuda_reference.matmul.cuda_cores import DESIGN
from perf.offline import sass
from tests import cases, nvcc
from tests.designs.matmul.exact import OF_GROUPS, check_order, computed, of_four_parts
from tests.harness import (
    DEVICES,
    available_on,
    offset_by_one,
    padded,
    prepare,
    random,
    run_checked,
    short,
    small_integers,
    thorough,
    transposed,
)
from tritonkernels.operations.matmul.schemes import SCHEMES
from tritonkernels.target import KNOWN, Target

NAME, ROOT = "cuda_cores", Path(cuda_reference.__file__).parent
SIMT, H100 = Target.named("simt"), Target.named("h100")


def problem(m, n, k, *batch, **options):
    a, b = (torch.empty(*batch, *shape, device="meta") for shape in ((m, k), (k, n)))
    return prepare("matmul", a, b, **options).problem


def configs(*shape, target):
    return DESIGN.configs(problem(*shape), target)


CONFIGS = configs(64, 64, 64, target=SIMT)
WHOLE, SPLIT = [c for c in CONFIGS if c["SPLIT_K"] == 1], [c for c in CONFIGS if c["SPLIT_K"] == 4]
THIN = [c for m, n in ((64, 8), (8, 64)) for c in configs(m, n, 64, target=SIMT) if c not in CONFIGS and c["SPLIT_K"] in (1, 4)]
EVERY_SPLIT = SPLIT + [c for c in THIN if c["SPLIT_K"] == 4]
# The smallest tiles of each loop
few_splits = short(
    lambda config: config["BM"] < 128 and (config["BM"] * config["BN"] == 1024 or config["BN"] == 64 == 8 * config["BK"])
)


def within(k, found=CONFIGS):
    """The configs that have no more splits than K has slices."""
    return [c for c in found if (c["SPLIT_K"] - 1) * c["BK"] < k]


def launch(*operands, config=CONFIGS[0], **options):
    call = prepare("matmul", *operands, **options)
    (only,) = DESIGN.launches(call.problem, config, *call.parts[0])
    return only


def kernel(*operands, **options):
    """(A along K, B along K, A in vectors, B in vectors) of the kernel that a call launches."""
    return tuple(word == "true" for word in launch(*operands, **options).expression.rstrip(">").split(", ")[-4:])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("a_along_k", (True, False))
@pytest.mark.parametrize("b_along_k", (True, False))
@pytest.mark.parametrize("a_in_vectors", (True, False))
@pytest.mark.parametrize("b_in_vectors", (True, False))
def test_operands_are_read_without_a_copy(device, a_along_k, b_along_k, a_in_vectors, b_in_vectors, everything):
    """Several of the smallest tiles, and slices of which the last is shorter.

    In the emulation `make test` runs a config of each loop, another one in half of the combinations.
    """
    a, b = random(2, 44, 36, device=device), random(2, 36, 40, device=device)
    a, b = a if a_along_k else transposed(a), transposed(b) if b_along_k else b
    if not a_in_vectors:
        a = offset_by_one(a) if a_along_k else offset_by_one(a.mT).mT
    if not b_in_vectors:
        b = offset_by_one(b.mT).mT if b_along_k else offset_by_one(b)
    assert kernel(a, b) == (a_along_k, b_along_k, a_in_vectors, b_in_vectors)
    half = (a_along_k + b_along_k + a_in_vectors + b_in_vectors) % 2
    some = CONFIGS[::8]
    for config in within(36, CONFIGS if everything or device == "cuda" else (some[half], some[3 - half])):
        run_checked(LIBRARY, "matmul", NAME, a, b, config=config)


@pytest.mark.parametrize("device", DEVICES)
@short(
    lambda device, config, layout: device == "cuda" or (config["SPLIT_K"] == 1 and (layout[1] == "N") != (config["BN"] == 16))
)
@pytest.mark.parametrize("layout", ["NN", "NT", "TN", "TT"])
@pytest.mark.parametrize("config", THIN, ids=lambda c: "{BM}x{BN} {SPLIT_K}".format(**c))
def test_thin_tiles(device, layout, config):
    """With as many rows or columns as they have, all but one, and one; with two tiles the other way, but for an element."""
    thin, k = min(config["BM"], config["BN"]), 3 * config["BK"] + 5
    for few, many in ((thin, 255), (thin - 1, 256), (1, 257)):
        m, n = (few, many) if config["BM"] < config["BN"] else (many, few)
        a, b, c = (random(*shape, device=device) for shape in ((2, m, k), (k, n), (2, m, n)))
        a, b = transposed(a) if layout[0] == "T" else a, transposed(b) if layout[1] == "T" else b
        run_checked(LIBRARY, "matmul", NAME, a, b, config=config, c=c, beta=-0.5, bias=c[0, 0], activation="relu")


def test_which_products_have_thin_tiles():
    def thin(m, n):
        return {(c["BM"], c["BN"]) for c in configs(m, n, 64, target=H100)} - {(c["BM"], c["BN"]) for c in CONFIGS}

    assert thin(64, 8) == {(128, 8), (128, 16)} and thin(64, 9) == {(128, 16)} and thin(8, 64) == {(8, 128)}
    assert thin(64, 17) == thin(9, 64) == set()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("a_along_k", (True, False))
@pytest.mark.parametrize("b_along_k", (True, False))
def test_rows_that_end_inside_a_vector(device, a_along_k, b_along_k):
    """Memory between rows may be read but must not be used: here it is NaN."""
    m, n, k = 35, 38, 33
    a = padded(random(2, m, k, device=device)) if a_along_k else padded(random(2, k, m, device=device)).mT
    b = padded(random(2, n, k, device=device)).mT if b_along_k else padded(random(2, k, n, device=device))
    assert kernel(a, b) == (a_along_k, b_along_k, True, True)
    for config in ({"SPLIT_K": 1}, {"SPLIT_K": 2}):
        run_checked(LIBRARY, "matmul", NAME, a, b, config=config)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("a_along_k", (True, False))
@pytest.mark.parametrize("b_along_k", (True, False))
def test_memory_that_ends_inside_a_vector(device, a_along_k, b_along_k, everything):
    """A copy of 16 bytes would read all of them, whatever it is asked for: with rows of 8 floats, of which the last has fewer.

    In the emulation `make test` runs few tiles, each with A in both directions and B in both, in two of the four combinations.
    """
    tiles = WHOLE if everything or device == "cuda" else WHOLE[(a_along_k + b_along_k) % 2 :: 7]

    def ends(rows, elements):
        return random(rows * 8 - (8 - elements), device=device).as_strided((rows, elements), (8, 1))

    for m, n, k in ((5, 6, 7), (6, 7, 5), (7, 5, 2), (1, 1, 1)):
        a = ends(m, k) if a_along_k else ends(k, m).t()
        b = ends(n, k).t() if b_along_k else ends(k, n)
        assert all(kernel(a, b)[2:]) or k == 1
        for config in (c for c in within(k) if c | {"SPLIT_K": 1} in tiles):
            run_checked(LIBRARY, "matmul", NAME, a, b, config=config)


def test_incomplete_vectors_are_read_by_element():
    a, b = torch.empty(2, 8, 8), torch.empty(8, 8)
    flat = torch.empty(200)
    assert kernel(a, b) == (True, False, True, True)
    assert kernel(a, flat[1:65].view(8, 8)) == (True, False, True, False), "an address that is not aligned to 16 bytes"
    assert not kernel(flat.as_strided((2, 8, 8), (66, 8, 1)), b)[2], "aligned rows, but matrices that are not"
    assert not kernel(a, flat.as_strided((8, 8), (4, 1)))[3], "rows that overlap: a vector could end after the last one"
    assert kernel(flat.as_strided((8, 8), (16, 2)), b)[2:] == (False, True), "no contiguous dimension"
    assert kernel(flat.as_strided((1, 8, 8), (3, 8, 1)), b)[2], "the batch stride of one matrix is unused"
    assert kernel(torch.empty(1, 8).expand(8, 8), b)[2], "one row for all"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", cases.EPILOGUES)
def test_epilogues(device, name, everything):
    options, reads_c, has_bias = cases.EPILOGUES[name]
    a, b, c = random(2, 37, 33, device=device), random(2, 33, 21, device=device), random(2, 37, 21, device=device)
    bias = random(42, device=device)[::2] if has_bias else None
    for addend in (transposed(c), c[:1, :, :1], c[0, 0, 0]) if reads_c else (None,):
        several = CONFIGS[:: 1 if everything or device == "cuda" else 4] if name == "all" else (CONFIGS[0], SPLIT[0])
        for config in within(33, several):
            run_checked(LIBRARY, "matmul", NAME, a, b, c=addend, bias=bias, config=config, **options)


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_shares_an_operand_and_repeats_its_bits(device):
    a, b = random(5, 20, 40, device=device), random(40, 24, device=device)
    shared, _ = run_checked(LIBRARY, "matmul", NAME, a, b)
    again = cuda_reference.matmul(a, b.expand(5, 40, 24).clone())
    assert torch.equal(shared, again)


@pytest.mark.parametrize("device", DEVICES)
@few_splits
@pytest.mark.parametrize("config", EVERY_SPLIT, ids=str)
@pytest.mark.parametrize(
    "slices, more, splits", [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 2), (4, 1, 3), (8, 1, 3), (4, 0, 4), (12, 0, 4)]
)
def test_no_split_is_empty(device, config, slices, more, splits):
    """With the same number of slices each but for the last: of so many slices, and an element more. One element more and one
    less than a tile; NaN beyond K."""
    available_on(LIBRARY, device)
    m, n, k = config["BM"] + 1, config["BN"] - 1, slices * config["BK"] + more
    for a, b in (
        (padded(small_integers(m, k, device=device)), padded(small_integers(k, n, device=device))),
        (transposed(small_integers(m, k, device=device)), small_integers(k, 2 * n, device=device)[:, ::2]),
    ):
        launched, result = computed(DESIGN, config, a, b)
        assert launched.grid == (2, splits) and torch.equal(result.double(), a.double() @ b.double())


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("parts, own", [(4, (0, 1, 2, 3)), *((28, own) for own in OF_GROUPS.values())], ids=["4", *OF_GROUPS])
@few_splits
@pytest.mark.parametrize("config", EVERY_SPLIT, ids=str)
def test_splits_are_added_in_the_order_of_k(device, config, parts, own):
    """More than 16 of them in groups. The next call finds the counters at zero."""
    available_on(LIBRARY, device)
    a, b = (part.float() for part in of_four_parts(config["BK"], parts, own, device))
    launched, result = computed(DESIGN, config | {"SPLIT_K": parts}, a.repeat(130, 1), b.repeat(40, 1).t())
    assert result.unique().tolist() == [2.0] and launched.grid[1] == parts
    assert len(launched.arguments[-2]) == launched.grid[0] * (1 if parts == 4 else 5) and not launched.arguments[-2].any()


@pytest.mark.parametrize("device", DEVICES)
def test_splits_of_nothing(device):
    """alpha = 0 leaves the epilogue, in which NaN of A and B has no part."""
    a, b, c = torch.full((33, 40), torch.nan, device=device), random(40, 35, device=device), random(33, 35, device=device)
    run_checked(LIBRARY, "matmul", NAME, a, b, c=c, alpha=0.0, beta=2.0, activation="silu", config=SPLIT[0])
    for m, n in ((0, 35), (33, 0)):
        assert cuda_reference.matmul(a[:m], b[:, :n], design=NAME, config=SPLIT[0]).shape == (m, n)


@short(lambda order: order == "1")
@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_the_same_bits_in_any_order_of_blocks(monkeypatch, order):
    """In a batch, with all that may follow the sums."""
    check_order(monkeypatch, order, NAME, {"BM": 64, "SPLIT_K": 4}, torch.float32)


@few_splits
@pytest.mark.parametrize("config", EVERY_SPLIT, ids=str)
def test_accesses_of_splits(config):
    """No races; parts without half-used sectors, and no more conflicts of banks than without splits."""
    from cuda_reference.trace import trace

    a, b = random(config["BM"], 5 * config["BK"]), random(5 * config["BK"], config["BN"])
    (whole,), (split,) = (trace(launch(a, b, config=config | {"SPLIT_K": splits})) for splits in (1, 4))
    of_whole, of_split = (
        [str(access) for access in traced.accesses if access.requests > 1 and access.units != access.ideal_units]
        for traced in (whole, split)
    )
    assert split.races == () and of_split == of_whole


def test_splits_are_for_few_tiles_and_a_long_k():
    def splits(*shape):
        found = configs(*shape, target=H100)
        assert found[0]["SPLIT_K"] == found[1]["SPLIT_K"] == 1 and found[0]["BM"] == 128
        return {size: sorted({c["SPLIT_K"] for c in found if c["BM"] == c["BN"] == size}) for size in (32, 64, 128)}

    assert splits(4096, 4096, 4096) == {32: [1], 64: [1], 128: [1]}
    assert splits(256, 40, 512) == {32: [1, 2, 4], 64: [1, 2, 4], 128: [1, 2, 4]}
    powers = [1, 2, 4, 8, 16, 32]
    filling = splits(256, 40, 2**15)  # of 16, 4 and 2 tiles one, two, three or four blocks on each of 132 SMs
    assert filling == {32: sorted([*powers, 24]), 64: [*powers, 33, 64, 66, 94, 98, 128], 128: [*powers, 64, 128]}
    assert splits(32, 32, 2**15)[32][-1] == 128
    assert splits(128, 128, 2**14, 8)[64][-1] == 16, "of 8 x 4 tiles for 4 blocks on each of 132 SMs"


@pytest.mark.parametrize("m, n, k", [(128, 64, 10064), (256, 40, 32768)])
def test_few_tiles_are_split_by_default(m, n, k):
    """By the model, of one kernel."""
    a, b = (torch.empty(*shape, device="meta") for shape in ((m, k), (k, n)))
    explained = cuda_reference.explain("matmul", a, b, activation="silu", target="h100")
    assert explained["design"] == NAME and explained["config"]["SPLIT_K"] >= 16 and explained["kernels"] == [NAME]
    for config in configs(m, n, k, target=H100):
        (work,) = DESIGN.work(problem(m, n, k), config, H100)
        assert work.blocks == -(-m // config["BM"]) * -(-n // config["BN"]) * config["SPLIT_K"]


def test_it_is_chosen_where_fp32_is_to_be_exact():
    """In a batch: a single product by rows is gemm's. The other modes of fp32 have designs of their own, too, which are faster
    where there is much to do."""
    for target in (t for t in KNOWN if t.vendor != "amd"):
        for dtype, options in cases.PRECISIONS + cases.MORE_PRECISIONS:
            a = torch.empty(2, 64, 64, dtype=dtype, device="meta")
            problem = prepare("matmul", a, a, **options).problem
            willing = [d for d in cuda_reference.designs("matmul") if d.refuses(problem, target) is None]
            ieee, mode = dtype == torch.float32 and not options, options.get("precision") in ("tf32", *SCHEMES)
            assert ("cuda_cores" in {d.name for d in willing}) == (ieee or mode)
            if willing and not mode:
                chosen = LIBRARY.choose(problem, target)[0].name
                assert ("cuda_cores" in chosen or "gemm." in chosen) == ieee, (target.name, options)


@pytest.mark.long
@nvcc.needed
@thorough  # tests/designs/test_compile.py has the kernels of the smallest tile
@pytest.mark.parametrize("architecture", ("80", "90a", "100a", "120a"))
def test_no_kernel_spills(architecture):
    a, b = random(4, 64), random(64, 4)
    kernels = [kernel for config in WHOLE + SPLIT for kernel in launch(a, b, config=config).source.expressions]
    cubin = nvcc.compiled(architecture, ["matmul/cuda_cores.cuh"], kernels, "-Werror", "all-warnings").cubin
    code = sass.read(cubin).values()
    assert len(code) == len(kernels) == 240 and not any(kernel.stack_bytes for kernel in code)
    assert all(sass.share(kernel.hot_loop(), ("FFMA",)) > 0.6 for kernel in code), "IEEE fp32, on CUDA cores"
    if architecture in ("80", "90a"):  # two blocks of 256 threads fit on an SM, of the scalar path's too
        of_256 = [used for name, (used, *_) in sass.resource_usage(cubin).items() if "Li128ELi128ELi16ELi8E" in name]
        assert of_256 and max(of_256) <= 128
