"""split(): products of planes that were made before have the bits of the same design's products of B itself, and what a Split
refuses."""

import copy
import pickle

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.designs.matmul.exact import with_wgmma
from tests.designs.matmul.test_planes import BOTH, spread
from tests.harness import (
    DEVICES,
    LIBRARIES,
    available_on,
    bits,
    moved,
    padded,
    prepare,
    random,
    run_checked,
    step_two,
    transposed,
)
from tritonkernels.design import as_dict
from tritonkernels.errors import (
    ArgumentError,
    DeviceError,
    DtypeError,
    GradientError,
    OverlapError,
    ShapeError,
    UnsupportedError,
)
from tritonkernels.operations.matmul.schemes import SCHEMES
from tritonkernels.operations.matmul.split import unpacked
from tritonkernels.plans import Plans
from tritonkernels.target import Target

ON = pytest.mark.parametrize("device", DEVICES)
PACKAGES = {"tritonkernels": tritonkernels, "cuda_reference": cuda_reference}
CUDA, TRITON = LIBRARIES
CASES = [
    pytest.param(library, design, precision, id=f"{library.package}-{design}-{precision}")
    for library, design in ((TRITON, "planes"), (CUDA, "planes"), (CUDA, "persistent_planes"))
    for precision in SCHEMES
    if design == "planes" or SCHEMES[precision].shifted
]
OF_CASES = pytest.mark.parametrize("library, design, precision", CASES)
X3 = {"precision": "fp16x3"}


@pytest.fixture(autouse=True)
def by_planes(monkeypatch):
    """A Split is multiplied by its planes where no design is named: the choice might be one that reads B itself."""

    def restricted(choose):
        def first(problem, target, design=None, config=None):
            return choose(problem, target, design or ("planes" if problem.b_split else None), config)

        return first

    for library in LIBRARIES:
        monkeypatch.setattr(library, "choose", restricted(library.choose))
        monkeypatch.setattr(library, "plans", Plans())


def config_of(library, design, a, b, precision):
    """That of the plain call. A Split's may have another one, as its time is another, and other splits of K round otherwise."""
    return as_dict(library.choose(prepare("matmul", a, b, precision=precision).problem, library.target(a.device), design)[1])


def same_bits(library, design, precision, a, b, **options):
    """The result of a Split of B, which has the bits of B's own by the same config, within the bound of the mode."""
    available_on(library, a.device.type)
    if design == "persistent_planes":
        with_wgmma(a.device.type)
    planes = unpacked(PACKAGES[library.package].split(b, precision=precision), None)[2]
    options |= {"precision": precision, "config": config_of(library, design, a, b, precision)}
    result, _ = run_checked(library, "matmul", design, a, b, **planes, **options)
    plain, _ = run_checked(library, "matmul", design, a, b, **options)
    assert torch.equal(bits(result), bits(plain))
    return result


@ON
@OF_CASES
@pytest.mark.parametrize("layout", [torch.clone, transposed, step_two, padded])
def test_the_bits_of_the_plain_product(library, design, precision, device, layout):
    for m, n, k in ((33, 37, 300), (1, 70, 261), (65, 1, 321)):
        same_bits(library, design, precision, random(m, k, device=device), moved(layout(random(k, n)), device))


@ON
@OF_CASES
def test_operands_of_every_size(library, design, precision, device):
    """Columns that refuse, that are computed again, of denormals, infinities and NaN: ranges are B's own."""
    a, b = random(20, 290, device=device), spread(290, 70).to(device)
    b[7, 3], b[9, 4] = torch.inf, torch.nan
    b[:, 5] = 0
    available_on(library, device)
    if design == "persistent_planes":
        with_wgmma(device)
    package = PACKAGES[library.package]
    how = {"design": design, "config": config_of(library, design, a, b, precision)}
    result = package.matmul(a, package.split(b, precision=precision), **how)
    assert torch.equal(bits(result), bits(package.matmul(a, b, precision=precision, **how)))
    assert result[:, 4].isnan().all()


@ON
@OF_CASES
def test_batches(library, design, precision, device):
    """A B for all of A's batch, one for each, batches that broadcast against each other, and an expanded one."""
    for of_a, of_b in (((3,), ()), ((), (3,)), ((3,), (3,)), ((2, 1), (1, 3)), ((2, 1), (3,))):
        a, b = random(*of_a, 5, 270, device=device), random(*of_b, 270, 9, device=device)
        same_bits(library, design, precision, a, b)
    b = random(2, 1, 9, 270, device=device).mT.expand(2, 3, 270, 9)  # several parts: no single stride from matrix to matrix
    same_bits(library, design, precision, random(2, 3, 5, 270, device=device), b)


@ON
@OF_CASES
def test_what_follows(library, design, precision, device):
    a, b = random(3, 20, 270, device=device), random(270, 30, device=device)
    more = {"alpha": -1.5, "beta": 0.5, "c": random(3, 20, 30, device=device), "bias": random(30, device=device)}
    same_bits(library, design, precision, a, b, **more, activation="gelu")


@ON
@BOTH
@pytest.mark.parametrize("precision", SCHEMES)
@pytest.mark.parametrize("m, n, k", [(0, 5, 270), (5, 0, 270), (5, 7, 0), (5, 7, 1), (5, 7, 64)])
def test_edges(library, device, precision, m, n, k):
    """fp32 of few products is computed from B itself."""
    available_on(library, device)
    package = PACKAGES[library.package]
    a, b = random(m, k, device=device), random(k, n, device=device)
    result = package.matmul(a, package.split(b, precision=precision))
    torch.testing.assert_close(result.double(), a.double() @ b.double(), rtol=1e-5, atol=1e-5)
    empty = package.split(b.expand(0, k, n), precision=precision)
    assert package.matmul(a, empty).shape == (0, m, n)


@BOTH
def test_a_product_without_b(library):
    """alpha=0 reads neither B nor its planes."""
    package = PACKAGES[library.package]
    b = torch.full((300, 5), torch.nan)
    assert not package.matmul(torch.ones(4, 300), package.split(b, **X3), alpha=0.0).any()


@pytest.mark.parametrize("precision", SCHEMES)
def test_both_packages_take_either(precision):
    a, b = torch.randn(2, 5, 290), torch.randn(2, 290, 7)
    ours, theirs = tritonkernels.split(b, precision=precision), cuda_reference.split(b, precision=precision)
    assert torch.equal(ours.planes, theirs.planes)
    assert ours.ranges is theirs.ranges is None or torch.equal(ours.ranges, theirs.ranges)
    for package in PACKAGES.values():
        result = package.matmul(a, ours)
        assert torch.equal(result, package.matmul(a, theirs))
        torch.testing.assert_close(result, a @ b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("precision", SCHEMES)
def test_planes_of_no_products(precision, monkeypatch):
    """They are zeros, which are read: rows of planes are padded."""
    empty = torch.empty
    monkeypatch.setattr(torch, "empty", lambda *args, **options: empty(*args, **options).fill_(1))
    for split in (tritonkernels.split, cuda_reference.split):
        s = split(torch.ones(2, 0, 7), precision=precision)
        assert not s.planes.any() and (s.ranges is None or not s.ranges.any())
        for package in PACKAGES.values():
            assert not package.matmul(torch.ones(2, 5, 0), s).any()


@BOTH
@pytest.mark.parametrize("precision", SCHEMES)
def test_b_is_not_split_again(library, precision):
    """Neither by launches nor in the model of time."""
    package, scheme = PACKAGES[library.package], SCHEMES[precision]
    a, b = torch.randn(40, 300), torch.randn(300, 64)
    s = package.split(b, precision=precision)
    kernels = [package.explain("matmul", a, of, precision=precision, design="planes")["kernels"] for of in (s, b)]
    splits = ["extremes", "split"] if scheme.shifted else ["split"]
    assert len(kernels[1]) == len(kernels[0]) + len(splits)
    target = Target.named("h200")
    with_planes = prepare("matmul", a, b, precision=precision, b_planes=s.planes, b_ranges=s.ranges).problem
    plain = prepare("matmul", a, b, precision=precision).problem
    assert with_planes.b_split and not plain.b_split
    reading = {choice.design for choice in library.ranking(with_planes, target) if choice.design.reads_split}
    assert "planes" in {design.name for design in reading}
    for design in reading:
        config = next(iter(design.configs(plain, target)))
        counts = [len([*design.work(problem, config, target)]) for problem in (with_planes, plain)]
        assert counts[1] == counts[0] + len(splits)
    assert package.explain("matmul", a, s, target="h200")["problem"]["b_split"]
    assert package.configs("matmul", a, b=s, design="planes")


@BOTH
def test_repeated_calls(library):
    """Their plans take the planes from the arguments: of another B they are other planes."""
    package = PACKAGES[library.package]
    for _ in range(4):
        a, b, out = torch.randn(30, 300), torch.randn(300, 40), torch.empty(30, 40)
        s = package.split(b, **X3)
        for result in (package.matmul(a, s), package.matmul(a, s, out=out)):
            torch.testing.assert_close(result, a @ b, rtol=1e-5, atol=1e-4)


@BOTH
@pytest.mark.parametrize(
    "precision, per_element, per_column",
    [("fp16x3", 4, 12), ("fp32", 4, 12), ("tf32x3", 8, 0), ("bf16x6", 6, 0)],
)
def test_what_it_says(library, precision, per_element, per_column):
    b = torch.randn(9, 300).t()
    s = PACKAGES[library.package].split(b, precision=precision)
    assert (s.shape, s.stride(), s.dtype, s.device, s.precision) == (b.shape, b.stride(), b.dtype, b.device, precision)
    assert s.nbytes == 320 * 9 * per_element + 9 * per_column
    assert s.tensor is b and repr(s) == f"Split((300, 9), precision={precision!r}, device='cpu', nbytes={s.nbytes})"


@BOTH
@pytest.mark.parametrize(
    "change",
    [
        lambda b: b.mul_(2),
        lambda b: b.detach()[0].zero_(),
        lambda b: b.t_(),
        lambda b: setattr(b, "data", torch.randn(300, 300)),
        lambda b: setattr(b, "data", b.data.mT),
        lambda b: tritonkernels.matmul(torch.randn(300, 300), torch.randn(300, 300), precision="fp16x3", out=b),
    ],
    ids=["in place", "a view in place", "transposed in place", "other memory", "other strides", "as an out"],
)
def test_a_tensor_that_changed(library, change):
    package = PACKAGES[library.package]
    a, b = torch.randn(4, 300), torch.randn(300, 300)[:, :300]
    s = package.split(b, **X3)
    package.matmul(a, s)
    change(b)
    with pytest.raises(ArgumentError, match=r"^b: got a Split of a tensor that has changed since.*split\(\) again"):
        package.matmul(a, s)
    package.matmul(a, package.split(b, **X3))


@BOTH
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda s: pickle.loads(pickle.dumps(s))], ids=["copied", "deep", "pickled"]
)
def test_copies(library, copied):
    """As modules that have one are copied and stored. One of a tensor that has changed stays one."""
    package = PACKAGES[library.package]
    a, s = torch.randn(4, 300), package.split(torch.randn(300, 300)[:, :300], **X3)
    expected, again = package.matmul(a, s), copied(s)
    assert torch.equal(package.matmul(a, again), expected)
    again.tensor.zero_()
    for changed in (again, copied(again)):
        with pytest.raises(ArgumentError, match=r"^b: got a Split of a tensor that has changed since"):
            package.matmul(a, changed)


@BOTH
def test_refusals_of_products(library):
    package = PACKAGES[library.package]
    a, s = torch.randn(4, 300), package.split(torch.randn(300, 5), **X3)
    for precision in ("fp32", "ieee", "tf32", "torch", "nonsense"):
        with pytest.raises(ArgumentError, match=r"^precision: got .*'fp16x3', for which b was split"):
            package.matmul(a, s, precision=precision)
    with pytest.raises(ShapeError, match=r"^b: got inner size 300; allowed: 299"):
        package.matmul(a[:, 1:], s)
    with pytest.raises(DeviceError, match=r"^b: got cpu; allowed: meta"):
        package.matmul(a.to("meta"), s)
    with pytest.raises(DtypeError, match=r"^b: got torch.float32; allowed: torch.float64"):
        package.matmul(a.double(), s)
    with pytest.raises(DtypeError, match=r"^a: got Split"):
        package.matmul(s, a)
    with pytest.raises(DtypeError, match=r"^b: got Split"):
        package.gemm(a, s)
    with pytest.raises(UnsupportedError, match="pipelined: "):
        package.matmul(a, s, design="pipelined")
    with pytest.raises(UnsupportedError, match="fused_planes: fp16x3 shifts rows"):
        package.matmul(a, s, design="fused_planes")


@BOTH
def test_refusals_of_splits(library):
    split = PACKAGES[library.package].split
    b = torch.randn(300, 5)
    for precision in (None, "ieee", "tf32", "torch", "fp16", "nonsense"):
        with pytest.raises(ArgumentError, match=r"^precision: got .*allowed: 'tf32x3', 'fp16x3'"):
            split(b, precision=precision)
    for given, error, why in (
        (b.double(), DtypeError, "^b: got torch.float64; allowed: torch.float32"),
        (b[0], ShapeError, "^b: got rank 1"),
        (b.tolist(), DtypeError, "^b: got list"),
        (b.to_sparse(), DtypeError, "^b: got a tensor of layout torch.sparse_coo"),
        (b.to("meta"), DeviceError, "^the operands: got a tensor on meta"),
        (b.as_subclass(Other), DtypeError, "^b: got Other; allowed: a torch.Tensor with memory"),
    ):
        with pytest.raises(error, match=why):
            split(given, **X3)
    with torch.inference_mode(), pytest.raises(ArgumentError, match=r"^b: got an inference tensor"):
        split(torch.ones(300, 5), **X3)
    with pytest.raises(DtypeError, match=r"^b: got a tensor inside a transform of torch\.func"):
        torch.vmap(lambda t: split(t, **X3).tensor)(torch.randn(2, 300, 5))


class Other(torch.Tensor):
    pass


@BOTH
def test_planes_of_another_tensor(library):
    """The operator of torch takes any tensors."""
    operator = getattr(torch.ops, library.package).matmul
    a, b = torch.randn(4, 300), torch.randn(300, 5)
    s = PACKAGES[library.package].split(b, **X3)
    assert torch.equal(operator(a, b, b_planes=s.planes, b_ranges=s.ranges, **X3), PACKAGES[library.package].matmul(a, s))
    with pytest.raises(OverlapError, match=r"^out: .*memory shared with b_planes"):
        operator.out(a, b, b_planes=s.planes, b_ranges=s.ranges, out=s.planes.view(torch.float32)[:4, :5], **X3)
    for planes, ranges, precision, name in (
        (s.planes[:, 1:], s.ranges, "fp16x3", "b_planes"),
        (s.planes.float(), s.ranges, "fp16x3", "b_planes"),
        (s.planes.mT.contiguous().mT, s.ranges, "fp16x3", "b_planes"),
        (s.planes, None, "fp16x3", "b_ranges"),
        (s.planes, s.ranges[:2], "fp16x3", "b_ranges"),
        (s.planes, s.ranges, "tf32x3", "b_planes"),
        (s.planes, s.ranges, "ieee", "b_planes"),
    ):
        with pytest.raises(ArgumentError, match=f"^{name}: got another tensor; allowed: what split"):
            operator(a, b, b_planes=planes, b_ranges=ranges, precision=precision)


@BOTH
@pytest.mark.parametrize("precision", ["fp16x3", "bf16x6"])
def test_gradients(library, precision):
    """A's is that of the plain call. B's is refused, where one would be recorded."""
    package = PACKAGES[library.package]
    weight = torch.nn.Parameter(torch.randn(7, 300))
    s = package.split(weight.t(), precision=precision)
    assert not s.planes.requires_grad
    a = torch.randn(2, 5, 300)
    with pytest.raises(GradientError, match=r"^b: got a Split of a tensor with requires_grad=True"):
        package.matmul(a, s)
    with torch.no_grad():
        expected = package.matmul(a, s)
    s = package.split(weight.detach().t(), precision=precision)
    a.requires_grad_()
    results = package.matmul(a, s), package.matmul(a, s.tensor, precision=precision, design="planes")
    assert torch.equal(results[0], expected)
    of_split, plain = (torch.autograd.grad(result.square().sum(), a)[0] for result in results)
    torch.testing.assert_close(of_split, plain)
    along = torch.func.jvp(lambda t: package.matmul(t, s), (a.detach(),), (a.detach(),))[1]
    torch.testing.assert_close(along, expected, rtol=1e-5, atol=1e-4)


@BOTH
def test_the_tangent_of_b(library):
    """It is multiplied itself, not the planes of B."""
    operator = getattr(torch.ops, library.package).matmul
    a, b, tangent = torch.randn(4, 300), torch.randn(300, 5), torch.randn(300, 5)
    s = PACKAGES[library.package].split(b, **X3)
    found = torch.func.jvp(lambda t: operator(a, t, b_planes=s.planes, b_ranges=s.ranges, **X3), (b,), (tangent,))[1]
    torch.testing.assert_close(found, a @ tangent, rtol=1e-5, atol=1e-4)


@BOTH
def test_what_wraps_a_call(library):
    package = PACKAGES[library.package]
    a, b = torch.randn(3, 5, 300), torch.randn(300, 7)
    s = package.split(b, **X3)
    expected = package.matmul(a, s)
    assert torch.equal(torch.vmap(lambda t: package.matmul(t, s))(a), expected)
    assert torch.equal(torch.compile(lambda t: package.matmul(t, s), backend="eager", fullgraph=True)(a), expected)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(package.matmul(a, s), expected)
    with torch.inference_mode():
        assert torch.equal(package.matmul(a, s), expected)
        of_inference = package.split(b, **X3)
    assert torch.equal(package.matmul(a.requires_grad_(), of_inference), expected)


@BOTH
def test_negated(library):
    package = PACKAGES[library.package]
    a, b = torch.randn(4, 300), torch.complex(torch.zeros(300, 5), torch.randn(300, 5)).conj().imag
    assert b.is_neg()
    torch.testing.assert_close(package.matmul(a, package.split(b, **X3)), a @ b, rtol=1e-5, atol=1e-4)
