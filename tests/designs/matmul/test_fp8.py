"""Products of fp8: both types with each other, scales of every form, sums that are promoted and sums that are not."""

import itertools

import pytest
import torch

import cuda_reference
import tritonkernels
from perf.offline import sass
from tests import nvcc
from tests.designs.matmul.test_persistent_cuda import code_of, launches
from tests.harness import (
    DEVICES,
    available_on,
    designs,
    prepare,
    random,
    refusal,
    run_checked,
    short,
    thorough,
    transposed,
)
from tritonkernels.errors import DeviceError, DtypeError, GradientError, ShapeError
from tritonkernels.matmul import MATMUL
from tritonkernels.numerics import error_bound

E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2
PACKAGES = {"tritonkernels": tritonkernels, "cuda_reference": cuda_reference}
M, N, K = 70, 37, 300

of_fp8 = pytest.mark.parametrize(
    "library, op, design",
    [p for p in designs("matmul") if refusal(*p.values, "cuda", (16, 16), (16, 16), dtype=E4M3) is None],
)
on_devices = pytest.mark.parametrize("device", DEVICES)
both_packages = pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)

# (shape of scale_a, shape of scale_b), None for no scale
SCALES = {
    "one each": ((), (1,)),
    "one of A": ((1, 1), None),
    "rows": ((M, 1), (1, N)),
    "rows of A": ((M, 1), None),
    "columns of B": (None, (1, N)),
    "rows and one": ((M, 1), ()),
    "one and columns": ((1,), (N,)),
    "one for each of a batch": ((2, 1, 1), (2, 1, 1)),
    "columns of a batch": ((2, 1, 1), (2, 1, N)),
    "rows of a batch": ((2, M, 1), (1, 1, 1)),
}


def operands(device, *batch, a_type=E4M3, b_type=E5M2, k=K):
    """Asymmetric: neither is around 0."""
    a, b = (random(*batch, *shape, device=device) + 0.25 for shape in ((M, k), (k, N)))
    return a.to(a_type), transposed(b).to(b_type)


def scales(shapes, device):
    """Scales of both signs and several sizes."""
    drawn = (None if shape is None else torch.randn(shape) * torch.randn(shape).exp2() for shape in shapes)
    return dict(zip(("scale_a", "scale_b"), (t if t is None else t.to(device) for t in drawn)))


@of_fp8
@on_devices
@pytest.mark.parametrize("accumulate", ["fp32", "fast"])
@pytest.mark.parametrize("a_type, b_type", [*itertools.product((E4M3, E5M2), repeat=2)], ids=str)
@short(lambda a_type, b_type, accumulate: a_type != b_type or (a_type, accumulate) == (E4M3, "fast"))
def test_every_pair_of_types(library, op, design, device, a_type, b_type, accumulate):
    available_on(library, device)
    a, b = operands(device, a_type=a_type, b_type=b_type)
    run_checked(library, op, design, a, b, accumulate=accumulate, out_dtype=torch.bfloat16, **scales(SCALES["rows"], device))


@of_fp8
@on_devices
@pytest.mark.parametrize("form", SCALES)
def test_every_form_of_scales(library, op, design, device, form):
    available_on(library, device)
    a, b = operands(device, *([2] if "batch" in form else []))
    run_checked(library, op, design, a, b, **scales(SCALES[form], device))
    given = scales(SCALES[form], device)
    strided = {
        name: s if s is None else torch.stack([s, s.new_full(s.shape, torch.nan)], -1)[..., 0] for name, s in given.items()
    }
    run_checked(library, op, design, a, b, **strided)


@of_fp8
@on_devices
@pytest.mark.parametrize("form", ["one each", "rows", "rows of a batch"])
@short(lambda form: form != "one each")
def test_scales_before_what_is_added(library, op, design, device, form):
    available_on(library, device)
    a, b = operands(device, 2)
    c, bias = (random(*shape, device=device).half() for shape in ((2, M, N), (N,)))
    options = {"alpha": -1.5, "beta": 0.5, "c": c, "bias": bias, "activation": "gelu"}
    run_checked(library, op, design, a, b, **scales(SCALES[form], device), **options)


@of_fp8
@on_devices
def test_vectors_count_as_a_row_and_a_column(library, op, design, device):
    available_on(library, device)
    a, b = operands(device)
    given = scales(((1, 1), (1, N)), device)
    run_checked(library, op, design, a[3], b, **given)
    run_checked(library, op, design, a, b[:, 5], **scales(((M, 1), (1, 1)), device))
    run_checked(library, op, design, a[3], b[:, 5], **scales(((1,), (1, 1)), device))


@of_fp8
@on_devices
@pytest.mark.parametrize("accumulate", ["fp32", "fast"])
def test_slices_of_k(library, op, design, device, accumulate, everything):
    """One, a part of one, an even and an odd number of them, and several rounds of the stages."""
    available_on(library, device)
    few, others = (1, 129, 256, 384, 1290), (31, 32, 127, 128, 255, 257, 513)
    for k in (*few, *others) if everything else few:
        a, b = operands(device, k=k)
        run_checked(library, op, design, a, b, accumulate=accumulate)


@of_fp8
@on_devices
@pytest.mark.parametrize("slices", [1, 2, 3, 4, 9])
def test_slices_are_added_in_fp32(library, op, design, device, slices):
    """The first slice has a sum of 2^10. After it Hopper's tensor cores lose what is below 2^-3, as all later slices are."""
    available_on(library, device)
    a, b = torch.zeros(M, 128 * slices, device=device), torch.zeros(128 * slices, N, device=device)
    a[:, 5], b[5], a[:, 128:], b[128:] = 32.0, 32.0, 1.0, 2.0**-9
    exact = 2.0**10 + (slices - 1) * 128 * 2.0**-9
    result = prepare(op, a.to(E4M3), b.to(E4M3), out_dtype=torch.float32)
    assert (library.run(result, design) == exact).all()
    fast = prepare(op, a.to(E4M3), b.to(E4M3), out_dtype=torch.float32, accumulate="fast")
    # Triton's interpreter has fp32 sums, and other blocks' sums are small
    lossy = library.package == "cuda_reference" and design == "persistent" and device == "cpu"
    assert not lossy or (library.run(fast, design) == 2.0**10).all()


def least_of(dtype):
    """The smallest denormal."""
    return torch.finfo(dtype).smallest_normal * torch.finfo(dtype).eps


@of_fp8
@on_devices
def test_infinities_and_denormals(library, op, design, device):
    available_on(library, device)
    a, b = operands(device, a_type=E5M2, b_type=E4M3)
    given = scales(SCALES["rows"], device)
    for value in (torch.inf, -torch.inf, torch.nan):
        a[3, 5] = value
        result, _ = run_checked(library, op, design, a, b, **given)
        assert not result[3].isfinite().any() and result[:3].isfinite().all()
    a, b = (torch.randint(-3, 4, t.shape, device=device).mul(least_of(t.dtype)).to(t.dtype) for t in (a, b))
    result, _ = run_checked(library, op, design, a, b, out_dtype=torch.float32, **given)
    assert (result != 0).any()


@of_fp8
@on_devices
def test_scales_are_not_read_where_alpha_is_zero(library, op, design, device):
    available_on(library, device)
    a, b = operands(device)
    c, nan = random(M, N, device=device).half(), torch.full((M, 1), torch.nan, device=device)
    call = prepare(op, a, b, alpha=0.0, c=c, scale_a=nan)
    if design in ("persistent", "warp_specialized") and library.package == "tritonkernels":  # they refuse products of nothing
        return
    assert torch.equal(library.run(call, design), c)


@both_packages
@pytest.mark.parametrize("rows", [False, True])
def test_as_torch_does_it(package, rows):
    """torch._scaled_mm of a CPU has scales of a matrix only."""
    available_on(package.launch.LIBRARY, "cpu")
    a, b = operands("cpu", b_type=E4M3, k=304)
    a, b = a[:64], transposed(b[:, :32])
    given = {"scale_a": torch.rand(64, 1) + 0.5, "scale_b": torch.rand(1, 32) + 0.5}
    if not rows:
        given = {name: scale.flatten()[:1] for name, scale in given.items()}
    try:
        expected = torch._scaled_mm(a, b, **given, out_dtype=torch.bfloat16)
    except (RuntimeError, NotImplementedError, ValueError) as error:
        pytest.skip(str(error).splitlines()[0])
    result = package.matmul(a, b, out_dtype=torch.bfloat16, **given)
    torch.testing.assert_close(result, expected, rtol=2.0**-7, atol=1e-2)


WRONG = {
    "not of fp8": (DtypeError, {"a": torch.ones(4, 8), "b": torch.ones(8, 6), "scale_a": torch.ones(())}, "scale_a"),
    "half": (DtypeError, {"scale_a": torch.ones((), dtype=torch.half)}, "scale_a"),
    "a number": (DtypeError, {"scale_b": 1.0}, "scale_b"),
    "a vector for rows": (ShapeError, {"scale_a": torch.ones(4)}, "scale_a"),
    "rows of B": (ShapeError, {"scale_b": torch.ones(6, 1)}, "scale_b"),
    "too many": (ShapeError, {"scale_a": torch.ones(5, 1)}, "scale_a"),
    "blocks": (ShapeError, {"scale_a": torch.ones(4, 2)}, "scale_a"),
    "a batch of a matrix": (ShapeError, {"scale_a": torch.ones(2, 4, 1)}, "scale_a"),
    "another device": (DeviceError, {"scale_b": torch.ones((), device="meta")}, "scale_b"),
    "a gradient": (GradientError, {"scale_a": torch.ones((), requires_grad=True)}, "scale_a"),
    "b in half": (DtypeError, {"b": torch.ones(8, 6).half()}, "b"),
}


@both_packages
@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(package, name):
    error, wrong, argument = WRONG[name]
    right = {"a": torch.ones(4, 8).to(E4M3), "b": torch.ones(8, 6).to(E5M2)}
    for _ in range(3):  # a repeated call, too
        with pytest.raises(error, match=f"^{argument}: "):
            package.matmul(**(right | wrong))


@both_packages
def test_a_batch_by_vmap_and_autocast(package):
    available_on(package.launch.LIBRARY, "cpu")
    a, b = operands("cpu", 2)
    given = scales(SCALES["rows"], "cpu")
    expected = package.matmul(a, b, **given)
    assert torch.equal(torch.vmap(lambda a, b: package.matmul(a, b, **given))(a, b), expected)
    many = torch.stack([given["scale_a"], 2 * given["scale_a"]])
    found = torch.vmap(lambda a, b, scale: package.matmul(a, b, scale_a=scale, scale_b=given["scale_b"]))(a, b, many)
    assert torch.equal(found, package.matmul(a, b, scale_a=many, scale_b=given["scale_b"]))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(package.matmul(a, b, **given), expected)


def test_the_bound_counts_the_scales_and_the_length_of_fast_sums():
    def relative(k, **options):
        a, b = (torch.empty(shape, device="meta").to(E4M3) for shape in ((M, k), (k, N)))
        return error_bound(prepare("matmul", a, b, **options).problem).relative

    scaled = relative(4096, scale_a=torch.ones((), device="meta"))
    assert scaled - relative(4096) == pytest.approx(2 * 2.0**-23, rel=0.01)
    assert relative(4096) < 0.0171 and relative(4096, accumulate="fast") == pytest.approx((33 / 32 * 4096 + 4) * 2.0**-13, 0.01)


def test_what_cuda_designs_take_and_where():
    a, b = (torch.empty(4096, 4096, device="meta").to(t) for t in (E4M3, E5M2))
    chosen = cuda_reference.explain("matmul", a, b.mT, target="h200")
    assert (chosen["design"], chosen["kernels"]) == ("persistent", ["persistent"])
    assert chosen["config"]["BM"] // chosen["config"]["CONSUMERS"] * chosen["config"]["BN"] <= 64 * 128
    fast = cuda_reference.configs("matmul", a, b.mT, accumulate="fast", target="h200")
    assert any(config["BN"] == 256 for config in fast if "CONSUMERS" in config)
    assert cuda_reference.explain("matmul", a, b, target="h200")["kernels"] == ["align", "persistent"], "B along K first"


ROWS = {"scale_a": torch.empty(4096, 1, device="meta"), "scale_b": torch.empty(1, 4096, device="meta")}
SQUARE, BIG, HIGH = ({"BM": m, "BN": n} for m, n in ((128, 128), (128, 256), (256, 128)))
# (types, options, config) -> the instruction, how many in a round of the loop, how many slices
CODE = {
    "promoted": ((E4M3, E4M3), {}, SQUARE, "QGMMA.64x128x32.F32.E4M3.E4M3", 8, 2),
    "promoted, rows": ((E4M3, E5M2), ROWS, SQUARE, "QGMMA.64x128x32.F32.E4M3.E5M2", 8, 2),
    "fast": ((E5M2, E4M3), {"accumulate": "fast"}, BIG, "QGMMA.64x256x32.F32.E5M2.E4M3", 16, 4),
    "fast, rows": ((E5M2, E5M2), {"accumulate": "fast", **ROWS}, BIG, "QGMMA.64x256x32.F32.E5M2.E5M2", 16, 4),
    "fast, high": ((E4M3, E4M3), {"accumulate": "fast", **ROWS}, HIGH, "QGMMA.64x128x32.F32.E4M3.E4M3", 32, 4),
}


@thorough
@nvcc.needed
@pytest.mark.parametrize("kind", CODE)
def test_machine_code(kind):
    """The products of a slice wait for none before them: they are under way while the sums of the slice before are added. The
    first adds to nothing. Nothing is spilled, and scales of rows take a few hundred instructions."""
    types, options, config, instruction, products, slices = CODE[kind]
    a, b = (torch.empty(4096, 4096, device="meta").to(dtype) for dtype in types)
    (launch,) = launches(a, b.mT, config, out_dtype=torch.bfloat16, **options)
    code = code_of(launch)
    loop = code.hot_loop()
    assert sass.count(loop, (instruction,)) == sass.count(loop, sass.TENSOR) == products
    assert sass.count(loop, ("WARPGROUP.ARRIVE",)) == sass.count(loop, ("WARPGROUP.DEPBAR",)) == slices
    assert sass.count(loop, ("FADD",)) == (2 * 64 if slices == 2 else 0) and loop.total() <= 250
    assert code.stack_bytes == 0 and code.registers * 3 == 40 + 2 * 232
    assert len(code.instructions) <= (1600 if slices == 2 else 1900)
    fresh = [text for _, text in code.instructions if text.startswith("QGMMA") and "!UPT" in text]
    assert len(fresh) == (4 if slices == 2 else 0)


def test_ranks_may_share_out_scales_as_the_rows_and_columns_that_they_are_of():
    shapes = {"a": (3, M, 8), "b": (8, N), "c": (N,), "scale_a": (3, M, 1), "scale_b": (1, N)}
    labels = MATMUL.rules.labels(**{name: torch.empty(shape, device="meta") for name, shape in shapes.items()})
    assert (labels["result"], labels["scale_a"], labels["scale_b"]) == ((0, "m", "n"), (0, "m", None), (None, "n"))
    one = MATMUL.rules.labels(torch.empty(8), torch.empty(8, N), None, None, torch.empty(1, 1), torch.empty(()))
    assert (one["scale_a"], one["scale_b"]) == ((None, None), ())
