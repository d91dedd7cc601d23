"""Repeated calls: different calls have different keys; a plan gives the same bits and launches what Triton launches."""

import itertools
import json
import threading
from pathlib import Path

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from tests import children
from tritonkernels import launch, plans, watch
from tritonkernels.errors import OverlapError
from tritonkernels.gemv import prepare
from tritonkernels.plans import key_of

ROOT = Path(__file__).parents[2]


def test_repetition_launches_what_triton_launches():
    """On a fake GPU, under 70 changes of dtype, alignment, strides, scalars, stream and design."""
    run = children.run("-m", "tests.operations.fake_gpu")
    assert run.returncode == 0, run.stderr
    output = json.loads(run.stdout)
    assert output["compared"] > 100 and not output["wrong"], output


CALLS = """
import sys, torch, cuda_reference
a, b = torch.randn(8, 8), torch.randn(8, 8)
for tensor in (a, a.clone().requires_grad_()):
    for _ in range(3):
        result = cuda_reference.gemm(tensor, b)
result.sum().backward()
not_lent = "cuda_reference.matmul.wgmma" in sys.modules
batch = torch.empty(2, 8, 8, device="meta")
cuda_reference.explain("matmul", batch, batch, target="h200")
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules], not_lent)
"""


def test_calls_do_not_import_torchs_compiler():
    """It takes seconds. Nor does gemm import what matmul does not lend it."""
    run = children.run("-c", CALLS)
    assert run.returncode == 0 and run.stdout.strip() == "[] False", run.stdout + run.stderr


def rows(start=0, dtype=torch.float32):
    return torch.zeros(8 * 8 + 16, dtype=dtype)[start : start + 64].view(8, 8)


APART = {
    "shape": (rows(), rows()[:4]),
    "strides": (rows(), rows().t()),
    "dtype": (rows(dtype=torch.float16), rows(dtype=torch.bfloat16)),
    "device": (rows().as_strided((0, 8), (8, 1)), torch.empty(0, 8, device="meta")),
    "alignment": (rows(), rows(start=1)),
    "a lazy sign": (rows(), rows()._neg_view()),
    "float and int": (1.0, 1),
    "int and bool": (1, True),
    "the sign of zero": (0.0, -0.0),
    "members": ((1, 1), (True, 1)),
    "None and its name": (None, "None"),
    "a config's number": ({"BM": 8, "BN": 8}, {"BM": 8, "BN": 16}),
    "a config's name": ({"BM": 8}, {"BN": 8}),
    "a config's number and truth": ({"BM": 1}, {"BM": True}),
    "a config and its text": ({"BM": 8}, "{'BM': 8}"),
}


@pytest.mark.parametrize("one, other", APART.values(), ids=APART)
def test_keys_differ_by_arguments(one, other):
    keys = [key_of("about", (value,))[0] for value in (one, one, other)]
    assert None not in keys and keys[0] == keys[1] != keys[2]


def test_keys_differ_by_settings():
    values = (rows(), "torch")
    keys = [key_of(about, values)[0] for about in ("gemm", "gemv")]
    torch.set_float32_matmul_precision("high")
    try:
        keys.append(key_of("gemm", values)[0])
    finally:
        torch.set_float32_matmul_precision("highest")
    convolution = torch.backends.cudnn.conv
    before, convolution.fp32_precision = convolution.fp32_precision, "ieee"
    try:
        keys.append(key_of("gemm", values)[0])
    finally:
        convolution.fp32_precision = before
    assert len(set(keys)) == 4 and key_of("gemm", values)[0] == keys[0]


def test_unknown_arguments_have_no_key():
    class Other(torch.Tensor):
        pass

    zeros = torch._efficientzerotensor((3, 4))
    for value in (rows().as_subclass(Other), rows().to_sparse(), zeros, [1], {"BM": 8.0}, {"BM": [8]}, {8: 8}, object()):
        assert key_of("about", (value,))[0] is None


def test_zeros_without_memory_are_read_as_zeros():
    """As torch has them for tangents, if nothing depends on a variable."""
    product = cuda_reference.gemm(torch._efficientzerotensor((3, 4)), torch.randn(4, 5))
    assert torch.equal(product, torch.zeros(3, 5))


def whole_way(*args, design=None, config=None, **kwargs):
    return LIBRARY.run(prepare(*args, **kwargs), design, config)


@pytest.fixture
def repeated(repeats_of):
    return repeats_of(LIBRARY)


def test_a_call_with_a_config_is_repeated(repeated):
    """With equal configs, not one object; one that is changed meanwhile is another config."""
    a, x = torch.randn(300, 70), torch.randn(70)
    one, other = cuda_reference.configs("gemv", a, x, design="vectorized", target="simt")[:2]
    config = dict(one)
    for numbers in (one, one, one, other, other, other):
        config |= numbers
        computed = cuda_reference.gemv(a, x, design="vectorized", config=dict(config))
        assert torch.equal(computed, whole_way(a, x, design="vectorized", config=config))
    assert repeated == [True] * 2


@pytest.mark.parametrize("design", ["vectorized", "split_n", "transposed"])
def test_repetition_gives_the_same_bits(repeated, design):
    """On new tensors each time, in the emulation; also in threads."""
    wrong = []

    def call(start, pitch, **options):
        a = torch.randn(40 * (70 + pitch) + start)[start:].view(40, 70 + pitch)[:, :70]
        x, y = torch.randn(70), torch.randn(40)
        computed = cuda_reference.gemv(a, x, y, design=design, **options)
        if not torch.equal(computed, whole_way(a, x, y, design=design, **options)):
            wrong.append((start, pitch, options))

    def calls():
        for start in (0, 1, 4):
            for pitch in (0, 2):
                for options in ({}, {"beta": -0.5}, {"alpha": 2.0, "beta": 1.5}):
                    call(start, pitch, **options)

    calls()
    calls()
    assert repeated == [True] * 12  # a shift of 16 bytes keeps the alignment, so a key comes twice in a pass
    calls()
    threads = [threading.Thread(target=calls) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and repeated == [True] * (12 + 3 * 18)


def test_a_repeated_call_takes_new_memory_or_out(repeated):
    a, x, out = torch.randn(40, 70), torch.randn(70), torch.full((40,), torch.nan)
    first, second, third, fourth = (cuda_reference.gemv(a, x, design="vectorized") for _ in range(4))
    assert len({t.data_ptr() for t in (first, second, third, fourth)}) == 4 and torch.equal(first, third)
    for _ in range(3):
        out.fill_(torch.nan)
        assert cuda_reference.gemv(a, x, out=out, design="vectorized") is out and torch.equal(out, first)
    empty = [cuda_reference.gemv(a[:0], x, design="vectorized") for _ in range(3)]
    assert len(set(map(id, empty))) == 3 and repeated == [True] * 4


@pytest.mark.parametrize("shares", [False, True], ids=["apart", "of one memory"])
def test_a_repeated_call_writes_over_its_addend(repeated, shares):
    """Any, and no other `out` of the same strides by the same plan."""
    a = torch.randn(40, 40)
    x = a[3] if shares else torch.randn(40)
    ys = torch.randn(8, 40)
    wanted = [whole_way(a, x, y, beta=0.5, design="vectorized") for y in ys]
    for y, result in zip(ys[:4], wanted):
        assert cuda_reference.gemv(a, x, y, beta=0.5, out=y, design="vectorized") is y and torch.equal(y, result)
    assert repeated == [True] * 2
    for y, result in zip(ys[4:], wanted[4:]):
        out, before = torch.full((40,), torch.nan), y.clone()
        cuda_reference.gemv(a, x, y, beta=0.5, out=out, design="vectorized")
        assert torch.equal(out, result) and torch.equal(y, before)
    assert repeated == [True] * 4
    for _ in range(3):  # at its address, but not y
        with pytest.raises(OverlapError):
            cuda_reference.gemv(a, x, ys.view(-1)[:80:2], beta=0.5, out=ys[0], design="vectorized")


def test_a_plan_does_not_hide_an_error(repeated):
    a, x = torch.randn(40, 40), torch.randn(40)
    for _ in range(3):
        cuda_reference.gemv(a, x, out=torch.empty(40), design="vectorized")
    assert repeated == [True]
    for out in (a[0], a[-1], x):  # each a legal out, elsewhere
        with pytest.raises(OverlapError):
            cuda_reference.gemv(a, x, out=out, design="vectorized")
    apart = torch.randn(2, 40)  # their address ranges overlap, their elements do not
    assert torch.equal(cuda_reference.gemv(a, x, out=apart[0], design="vectorized"), whole_way(a, x, design="vectorized"))


def test_a_plan_does_not_hide_a_gradient(repeated):
    a, x = torch.randn(40, 40), torch.randn(40)
    results = [cuda_reference.gemv(t, x, design="vectorized") for t in (a, a, a, a.clone().requires_grad_(), a)]
    assert [r.requires_grad for r in results] == [False, False, False, True, False] and repeated == [True] * 3
    with torch.no_grad():
        assert not cuda_reference.gemv(a.clone().requires_grad_(), x, design="vectorized").requires_grad


def test_a_plan_does_not_hide_an_overlap_of_one_element(repeated):
    a, memory = torch.randn(41, 41), torch.randn(81)
    for _ in range(3):
        cuda_reference.gemv(a, torch.randn(41), out=torch.empty(41), design="vectorized")
    for x, out in ((memory[:41], memory[40:]), (memory[40:], memory[:41])):
        with pytest.raises(OverlapError):
            cuda_reference.gemv(a, x, out=out, design="vectorized")
    assert repeated == [True, False, False], "a plan was found, and left the call to the full path"


def test_operands_that_share_memory(repeated):
    """The plan is made with copies of them; it serves any operands of such a call."""
    a = torch.randn(40, 40)
    for x in (a[1], a[2], a[3], torch.randn(40), a[4], torch.randn(40)):
        assert torch.equal(cuda_reference.gemv(a, x, design="vectorized"), whole_way(a, x, design="vectorized"))
    assert repeated == [True] * 4


def test_large_operands_are_not_copied(repeated, monkeypatch):
    monkeypatch.setattr(watch, "COPIED", 40 * 41 * 4 - 1)
    a = torch.randn(40, 40)
    for x in (a[1], a[1], a[1], torch.randn(40), torch.randn(40)):
        assert torch.equal(cuda_reference.gemv(a, x, design="vectorized"), whole_way(a, x, design="vectorized"))
    assert repeated == [True]


@pytest.mark.parametrize("one, other", itertools.combinations(range(4), 2))
def test_any_two_operands_may_overlap(one, other):
    """By one element. There is a plan of copies, and none where they are not copied."""
    memory = torch.arange(100.0)
    tensors = [memory[20 * i :][:10] for i in range(4)]
    assert watch.Watch(tensors).disjoint
    tensors[other] = tensors[one][9:]
    assert not watch.Watch(tensors).disjoint
    copied = watch.apart({str(i): t for i, t in enumerate(tensors)} | {"out": None})
    assert watch.Watch([copied[str(i)] for i in range(4)]).disjoint
    assert all(torch.equal(t, copied[str(i)]) for i, t in enumerate(tensors))


def test_an_out_that_overlaps_is_an_error_every_time(repeated):
    a, x = torch.randn(40, 40), torch.randn(40)
    for _ in range(3):
        with pytest.raises(OverlapError):
            cuda_reference.gemv(a, x, out=a[0])
    assert repeated == []


@pytest.mark.parametrize("dtype", (torch.float32, torch.float16, torch.int8))
def test_copies_have_the_strides_and_the_alignment(dtype):
    memory = torch.randint(-99, 99, (200,)).to(dtype)
    for start in range(0, 9):
        a = memory[start:].as_strided((3, 4, 5), (7, 0, 3))
        given = {"a": a, "b": memory[start + 2 :][:9], "scale": None, "empty": memory[:0], "out": None}
        copied = watch.apart(given)
        assert watch.are_disjoint([t for t in copied.values() if t is not None])
        for one, other in ((given[name], copied[name]) for name in ("a", "b")):
            assert torch.equal(one, other) and one.stride() == other.stride() and one.dtype == other.dtype
            assert (one.data_ptr() - other.data_ptr()) % plans.ALIGNMENT == 0 and not watch.are_disjoint([one, memory])
        assert copied["scale"] is None and copied["empty"] is given["empty"]
        assert watch.apart(given | {"out": memory}) == given | {"out": memory}
        assert watch.apart({"a": a, "out": None})["a"] is a


def test_plans_are_bounded(monkeypatch):
    monkeypatch.setattr(plans, "ROOM", 2)
    kept = plans.Plans()
    assert [kept.find(key) for key in "aabbccb"] == [None, plans.WATCH] * 3 + [plans.WATCH]
    assert [kept.find(key) for key in "ac"] == [None, plans.WATCH]


def test_another_launcher_than_triton_s_own_is_not_imitated():
    """A CompiledKernel that is launched with one more argument, or in another way."""

    class More:
        def __getitem__(self, grid):
            hooks = launch._knobs().runtime
            rest = (hooks.launch_enter_hook, hooks.launch_exit_hook, "more")
            return lambda *args, stream: self.run(*grid, stream, self.function, self.packed_metadata, 3, *rest, *args)

    from triton.compiler import CompiledKernel

    assert launch._has_known_launcher(CompiledKernel)
    assert not launch._has_known_launcher(More) and not launch._has_known_launcher(object)
