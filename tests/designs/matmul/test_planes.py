"""FP32 on tensor cores: the planes, the error of the product compared with ieee, tf32 and torch, and the ends of its range."""

import importlib
import math
import tempfile
from pathlib import Path

import pytest
import torch

import tritonkernels
from perf.measure import records
from perf.offline import sass
from tests import compiler, nvcc
from tests.harness import DEVICES, LIBRARIES, available_on, prepare, random, run_checked, short, thorough
from tritonkernels import backend, numerics
from tritonkernels.operations.matmul.schemes import SCHEMES

MODES = tuple(mode for mode, scheme in SCHEMES.items() if not scheme.again)  # test_fp32.py has the other
FUSED = tuple(mode for mode, scheme in SCHEMES.items() if not scheme.shifted)
OF_DESIGNS = [("planes", mode) for mode in MODES] + [("fused_planes", mode) for mode in FUSED]
ROOT = Path(__file__).parents[3]
BOTH = pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)


def split(library, matrix, precision):
    """(planes, the matrix that they represent, in float64, ranges) of an FP32 matrix."""
    backend.name()  # before the kernels are decorated
    name = "split" if library.package == "cuda_reference" else "fp32_planes"
    module = importlib.import_module(f"{library.package}.matmul.parts.{name}")
    launches, planes, ranges = module.split(matrix[None], precision)
    for launch in launches:
        launch.run()
    step = SCHEMES[precision].step
    held = sum(plane[0].double() / step**i for i, plane in enumerate(planes))
    if ranges is not None:
        held = torch.ldexp(held, (ranges[0, 0] >> 23).clamp(min=1)[:, None] - 141)
    return planes[:, 0], held[:, : matrix.shape[1]], ranges


def spread(*shape):
    """Random numbers with every exponent of FP32, including denormals."""
    return torch.ldexp(torch.randn(*shape), torch.randint(-149, 127, shape))


@BOTH
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", MODES)
@pytest.mark.parametrize("draw", [torch.randn, spread])
def test_planes_hold_the_matrix(library, device, precision, draw):
    available_on(library, device)
    x = draw(131, 70).to(device).mT
    planes, held, _ = split(library, x, precision)
    mode = numerics.MODES[precision]
    allowed = mode.inputs * x.double().abs() + mode.input_spacing / 2
    if mode.spread:
        allowed += 2.0**-50 * x.double().abs().amax(1, keepdim=True)
    assert ((x.double() - held).abs() <= allowed).all()
    assert planes.shape[2] == 192 and not planes[:, :, 131:].any(), "K is padded with zeros"
    assert ((planes[0, :, :131] != 0) == (x != 0)).all(), "infinity times a small number must not be NaN"


@BOTH
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("precision", MODES)
def test_planes_of_special_values(library, device, precision):
    available_on(library, device)
    x = torch.randn(5, 40, device=device)
    values = (math.inf, -math.inf, math.nan, 0.0, torch.finfo(torch.float32).max)
    x[:, 3] = torch.tensor(values, device=device)
    planes, *_ = split(library, x, precision)
    assert torch.equal(planes[0, :, 3].isinf(), torch.tensor([True, True, False, False, False], device=device))
    assert planes[0, 2, 3].isnan() and not planes[1:, :4, 3].any()
    assert planes[1:].isfinite().all() and planes[:, 4].isfinite().all()


def operands(kind, m, n, k):
    a, b = torch.randn(m, k), torch.randn(k, n)
    if kind == "positive":
        return a.abs(), b.abs()
    if kind == "wide":
        return a * 10.0 ** torch.empty(m, k).uniform_(-6, 6), b * 10.0 ** torch.empty(k, n).uniform_(-6, 6)
    if kind == "cancelling":  # to 2^-12 of the sum of absolute products
        half = k // 2
        a[:, half:], b[half:] = -a[:, :half], b[:half] * (1 + 2.0**-12 * torch.randn(half, n))
    return a, b


@short(lambda kind, k: k == 64 or kind == "positive")
@BOTH
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("k", [64, 4096])
@pytest.mark.parametrize("kind", ["normal", "positive", "wide", "cancelling"])
def test_split_modes_are_as_exact_as_ieee(library, device, kind, k):
    """The largest error relative to |A||B| is within a factor of ieee's and torch's, and many times smaller than tf32's."""
    available_on(tritonkernels.launch.LIBRARY, device)  # it computes ieee and tf32
    k = min(k, 512) if device == "cpu" else k  # the emulation takes 1 ms per k, and so does the interpreter
    a, b = (t.to(device) for t in operands(kind, 16, 16, k))
    exact, magnitude = a.double() @ b.double(), a.double().abs() @ b.double().abs()

    def error(result):
        return ((result.double() - exact).abs() / magnitude).max().item()

    assert torch.get_float32_matmul_precision() == "highest"
    # By name: a call that names no design may compute tf32 as ieee
    found = {mode: error(tritonkernels.matmul(a, b, precision=mode, design="pipelined")) for mode in ("ieee", "tf32")}
    for design, mode in OF_DESIGNS:
        found[design, mode] = error(run_checked(library, "matmul", design, a, b, precision=mode)[0])
    found["torch"] = error(a @ b)
    for mode in OF_DESIGNS:
        assert found[mode] <= 4 * max(found["ieee"], found["torch"], 2.0**-24), found
        assert found[mode] <= found["tf32"] / 20, found


def test_slices_limit_the_truncation_of_tensor_cores():
    """A model of tensor cores: exact sums of 16 products, truncated to FP32. Without slices the loss would grow with K."""
    k = 4096
    a, b = (t.half().double() for t in operands("positive", 8, 8, k))
    exact = a @ b

    def chopped(x):
        nearest = x.float()
        return torch.where(nearest.double().abs() > x.abs(), nearest.nextafter(torch.zeros(())), nearest).double()

    along = torch.zeros_like(exact)
    sliced = torch.zeros_like(exact)
    for start in range(0, k, numerics.SLICE):
        inside = torch.zeros_like(exact)
        for i in range(start, start + numerics.SLICE, 16):
            products = a[:, i : i + 16] @ b[i : i + 16]
            along, inside = chopped(along + products), chopped(inside + products)
        sliced = (sliced + inside).float().double()
    errors = [((x - exact).abs() / exact).max().item() for x in (sliced, along)]
    assert 8 * errors[0] < errors[1], errors
    assert errors[0] < numerics.gamma(numerics.SLICE, 2.0**-23) + numerics.gamma(k / numerics.SLICE, 2.0**-24) < errors[1] * 4


@BOTH
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("design, precision", OF_DESIGNS)
def test_large_next_to_small(library, device, design, precision):
    """In different rows every mode keeps both; in one row all but fp16x3, whose bound grows with the largest of the row."""
    available_on(library, device)
    a = torch.tensor([[1e30, 1e-30]], device=device)
    b = torch.tensor([[1e-30], [1e30]], device=device)
    result, _ = run_checked(library, "matmul", design, a, b, precision=precision)
    assert precision == "fp16x3" or result.item() == pytest.approx(2.0, rel=1e-6)
    rows, cols = (torch.logspace(-37, 37, 30, device=device) for _ in "ab")
    a, b = random(30, 50, device=device) * rows[:, None], random(50, 30, device=device) * cols.flip(0)
    exact, magnitude = a.double() @ b.double(), a.double().abs() @ b.double().abs()
    result, _ = run_checked(library, "matmul", design, a, b, precision=precision)
    kept = (magnitude < 1e38) & (magnitude > 1e-30) & (b.abs().amax(0) > 1e-33) & (a.abs().amax(1) > 1e-33)[:, None]
    assert kept.sum() > 100
    assert ((result.double() - exact).abs() <= 2.0**-20 * magnitude)[kept].all()


def special_as_in_float64(result, a, b):
    """How many elements of the product are infinite or NaN."""
    expected = a.double() @ b.double()
    special = ~expected.isfinite()
    assert torch.equal(special, ~result.isfinite())
    assert torch.equal(expected[special].nan_to_num(nan=0.0).sign(), result[special].nan_to_num(nan=0.0).double().sign())
    return special.sum()


def check_infinities_and_nan(library, device, design, precision, config=None):
    """In the first slice of K and in the second."""
    available_on(library, device)
    tiny = 2.0**-149
    a, b = random(9, 70, device=device), random(70, 11, device=device)
    a[0, 3], a[1, 69], a[2, 5], a[3, 5] = math.inf, -math.inf, math.nan, math.inf
    a[3, 6] = -math.inf
    b[3, :4] = torch.tensor([tiny, -tiny, 0.0, 1e-30], device=device)
    b[8, 9], b[9, 10] = math.inf, math.nan
    a[4, 8], a[5, 8], a[6, 8] = 0.0, tiny, -1e-38
    a[5, 9] = a[6, 0] = 1e30
    result, _ = run_checked(library, "matmul", design, a, b, precision=precision, config=config)
    assert special_as_in_float64(result, a, b) > 50


@BOTH
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("design, precision", OF_DESIGNS)
def test_infinities_and_nan_are_where_float64_has_them(library, device, design, precision):
    check_infinities_and_nan(library, device, design, precision)


@BOTH
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("design, precision", OF_DESIGNS)
def test_the_ends_of_the_range(library, device, design, precision):
    """The largest numbers, which bf16 and tf32 would round to infinity, and denormals."""
    available_on(library, device)
    largest = torch.finfo(torch.float32).max
    a = torch.tensor([[largest, -largest], [largest, 0.0], [3.4e38, 1.0]], device=device)
    b = torch.tensor([[0.25, 2.0**-20], [0.125, 0.0]], device=device)
    result, _ = run_checked(library, "matmul", design, a, b, precision=precision)
    assert result.isfinite().all()
    torch.testing.assert_close(result.double(), a.double() @ b.double(), rtol=1e-6, atol=0)
    a, b = random(20, 40, device=device) * 2.0**-130, random(40, 20, device=device) * 8
    result, _ = run_checked(library, "matmul", design, a, b, precision=precision)
    if precision == "fp16x3":  # a row of denormals is scaled like any other
        assert ((result.double() - a.double() @ b.double()).abs() <= 40 * 2.0**-149).all()


@pytest.mark.parametrize("precision", MODES)
@pytest.mark.parametrize("draw", [torch.randn, spread])
def test_both_packages_split_alike(precision, draw):
    """To the bit, except for the sign of zeros."""
    x = draw(131, 70)
    x[:5, 3] = torch.tensor((math.inf, -math.inf, 0.0, torch.finfo(torch.float32).max, 2.0**-149))
    x[3] *= 2.0**-149
    (one, *_), (other, *_) = (split(library, x.to(backend.device_type()), precision) for library in LIBRARIES)
    assert torch.equal(one, other)


@BOTH
@pytest.mark.parametrize("precision", MODES)
def test_a_shared_operand_is_split_once(library, precision):
    a, b = torch.empty(6, 5, 70, device="meta"), torch.empty(70, 9, device="meta")
    call = prepare("matmul", a, b, precision=precision)
    design = {d.name: d for d in library.designs("matmul")}["planes"]
    config = next(iter(design.configs(call.problem, library.target(torch.device(backend.device_type())))))
    *splits, product = design.launches(call.problem, config, *call.parts[0])
    assert len(splits) == (4 if precision == "fp16x3" else 2)
    if library.package == "tritonkernels":
        strides = product.values["a"].batch, product.values["b"].batch
    else:
        strides = product.arguments[13][0], product.arguments[13][3]
    assert strides == (5 * 128, 0) and product.grid[0] == 6


@thorough
@pytest.mark.parametrize("arch, multiply, copies", [("sm_90", "HGMMA.64x128x16.F32", 16), ("sm_80", "HMMA.16816.F32", 12)])
def test_the_hot_loop_of_fp16x3(arch, multiply, copies):
    """Three products of 4 loaded tiles, and FADDs at the end of each slice, without which all sums would be truncated."""
    out, other = inspect_fp16x3(arch)
    mix, tile = out["hot_loop"], out["config"]
    threads, elements = 32 * tile["num_warps"], tile["BLOCK_M"] * tile["BLOCK_N"]
    m, n = (128, 128) if arch == "sm_90" else (16, 8 * threads // 32)  # of the result, per instruction in every warp
    assert mix[multiply] == 3 * (elements // (m * n)) * tile["BLOCK_K"] // 16
    assert mix["FADD"] == elements // threads
    assert sum(count for name, count in mix.items() if name.startswith("LDGSTS")) == copies
    if arch == "sm_90":
        assert mix["WARPGROUP.ARRIVE"] == 3 and mix["WARPGROUP.DEPBAR.LE"] == 2, "products wait for each other"
    if "fault" not in other:  # there is nvcc
        mix, tile = other["hot_loop"], other["config"]
        warps = tile["BM"] * tile["BN"] // (tile["WM"] * tile["WN"])
        tiles, steps = tile["WM"] * tile["WN"] // (16 * 8), tile["BK"] // 16
        assert mix["HMMA.16816.F32"] == 3 * tiles * steps and mix["FADD"] == 4 * tiles
        assert mix["LDSM.16.M88.4"] == 2 * (tile["WM"] // 32) * (32 + tile["WN"]) // 16 * steps
        copied = sum(count for name, count in mix.items() if name.startswith("LDGSTS"))
        assert copied == 2 * (tile["BM"] + tile["BN"]) * tile["BK"] * 2 // (16 * 32 * warps)


def inspect_fp16x3(arch):
    """The facts of both packages' planes."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "facts.json")
        compiler.command("inspect", "matmul.planes", "--arch", arch, "--json", str(out)).check_returncode()
        rows = records.read_rows(out)
    assert [row["implementation"] for row in rows] == ["triton", "cuda"]
    for row in rows:
        assert row["problem"]["precision"] == "fp16x3" and row.get("stack_bytes", 0) == 0
    return rows


@thorough
@nvcc.needed
@pytest.mark.parametrize("precision, arch", [("tf32x3", "sm_80"), ("tf32x3", "sm_90"), ("bf16x9", "sm_90")])
def test_cuda_kernels_spill_nothing(precision, arch):
    """test_compile.py has the kernels of fp16x3; bf16x6 and bf16x9 differ only in the number of products."""
    call = prepare("matmul", torch.empty(8, 8), torch.empty(8, 8), precision=precision)
    design = {d.name: d for d in LIBRARIES[0].designs("matmul")}["planes"]
    config = next(iter(design.configs(call.problem, LIBRARIES[0].target(torch.device("cpu")))))
    *_, product = design.launches(call.problem, config, *call.parts[0])
    source = product.source
    used = sass.resource_usage(nvcc.compiled(arch.removeprefix("sm_"), [source.header], source.expressions).cubin)
    assert len(used) == len(source.expressions) and not any(stack for _, stack, _ in used.values())
