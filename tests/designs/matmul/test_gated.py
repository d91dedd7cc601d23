"""Gated linear units: in every design that has them, of both packages, next to float64; what else refuses them; and what torch
does with them."""

import functools

import pytest
import torch

import cuda_reference.nn
import tritonkernels
from tests.designs.matmul.exact import with_wgmma
from tests.harness import (
    DEVICES,
    LIBRARIES,
    available_on,
    moved,
    offset_by_one,
    poisoned,
    prepare,
    random,
    run_checked,
    short,
    step_two,
    transposed,
)
from tritonkernels import numerics
from tritonkernels.errors import ArgumentError, ShapeError, UnsupportedError
from tritonkernels.problem import GATED
from tritonkernels.target import Target

CUDA, TRITON = LIBRARIES
PACKAGES = {"tritonkernels": tritonkernels, "cuda_reference": cuda_reference}
ON = pytest.mark.parametrize("device", DEVICES)
IN_BOTH = pytest.mark.parametrize("package", PACKAGES.values(), ids=PACKAGES)
KINDS = {
    "fp16": (torch.float16, {}),
    "bf16": (torch.bfloat16, {}),
    "fp16 to fp32": (torch.float16, {"out_dtype": torch.float32}),
    "fp16 sums": (torch.float16, {"accumulate": "fp16"}),
    "tf32": (torch.float32, {"precision": "tf32"}),
    "ieee": (torch.float32, {}),
    "fp64": (torch.float64, {}),
    "fp8": (torch.float8_e4m3fn, {}),
    "fp8 to fp32, fast sums": (torch.float8_e4m3fn, {"accumulate": "fast", "out_dtype": torch.float32}),
}
OF_WGMMA = ("fp16", "bf16", "fp16 to fp32", "tf32", "fp8", "fp8 to fp32, fast sums")
DESIGNS = {
    (TRITON, "pipelined"): tuple(KINDS),
    (TRITON, "warp_specialized"): OF_WGMMA,
    (CUDA, "pipelined"): ("fp16", "bf16", "fp16 to fp32", "fp16 sums", "tf32", "fp64"),
    (CUDA, "persistent"): (*OF_WGMMA, "fp16 sums"),
    (CUDA, "cuda_cores"): ("ieee",),
}
OF_DESIGNS = pytest.mark.parametrize(
    "library, design, kind",
    [
        pytest.param(library, design, kind, id=f"{library.package}-{design}-{kind}")
        for (library, design), kinds in DESIGNS.items()
        for kind in kinds
    ],
)
SIZES = (1, 1, 1), (5, 7, 33), (70, 45, 64), (65, 64, 100), (33, 136, 260), (130, 200, 40), (64, 16, 0), (3, 0, 5), (0, 3, 5)
LAYOUTS = torch.clone, transposed, step_two, offset_by_one


def on(library, design, device):
    available_on(library, device)
    if design in ("persistent", "warp_specialized"):
        with_wgmma(device)
    if design == "warp_specialized" and device == "cpu":
        pytest.skip("Gluon needs a GPU")


def options_of(kind, m, f, turn, device):
    """The options of a call; every second one has a bias, and of fp8 scales."""
    dtype, options = KINDS[kind]
    out_dtype = options.get("out_dtype") or (torch.float16 if dtype.itemsize == 1 else dtype)
    options = options | {"activation": list(GATED)[turn % 3]}
    if turn % 2 == 0:
        options |= {"bias": random(2 * f, dtype=out_dtype, device=device), "alpha": -0.5}
        if dtype.itemsize == 1:
            options |= {"scale_a": 1 + random(m, 1, device=device).abs(), "scale_b": 1 + random(1, 2 * f, device=device).abs()}
    return dtype, options


@ON
@OF_DESIGNS
@pytest.mark.parametrize("turn", [0, 1, 2])
def test_any_size_layout_and_bias(library, design, kind, device, turn):
    on(library, design, device)
    for i, (m, f, k) in enumerate(SIZES, turn):
        if k == 0 and design == "warp_specialized":
            continue  # it refuses that
        dtype, options = options_of(kind, m, f, i, device)
        a, b = random(m, k, dtype=dtype), random(k, 2 * f, dtype=dtype)
        a, b = (moved(LAYOUTS[(i * step) % 4](t), device) for t, step in ((a, 1), (b, 3)))
        run_checked(library, "matmul", design, a, b, **options)


@ON
@OF_DESIGNS
def test_batches_and_results_of_any_stride(library, design, kind, device):
    on(library, design, device)
    dtype, options = options_of(kind, 33, 20, 0, device)
    a, b = (moved(t, device) for t in (random(3, 33, 40, dtype=dtype), random(40, 40, dtype=dtype)))
    run_checked(library, "matmul", design, a, b, **options)
    run_checked(library, "matmul", design, a, moved(random(3, 40, 40, dtype=dtype), device), **options)
    like = prepare("matmul", a, b, **options).result
    out, buffer, _ = poisoned((3, 20, 33), like.dtype, device)
    call = prepare("matmul", a, b, out=out.mT, **options)
    library.run(call, design)
    assert library.judge(call, design, None, a, b, **options).ok
    assert buffer.isnan().sum() == buffer.numel() - out.numel()


def configs_of(library, design, problem):
    target = Target.named({"tritonkernels": "interpreter", "cuda_reference": "simt"}[library.package])
    return list({d.name: d for d in library.designs("matmul")}[design].configs(problem, target))


@short(lambda turn: turn % 5 == 0)
@pytest.mark.parametrize("turn", range(25))
@pytest.mark.parametrize("out_dtype", [torch.bfloat16, torch.float32], ids=["bf16", "fp32"])
def test_every_kind_of_tile_of_persistent(turn, out_dtype):
    """One, two and three consumers, together and in turn, in clusters, of up to 320 columns: every 25th config of all. Of 400
    columns tiles of 320 have overlapping boxes; of 392 rows are no whole chunks of 16 bytes."""
    a = random(200, 130, dtype=torch.bfloat16)
    for f in (400, 196, 201):
        b, bias = transposed(random(130, 2 * f, dtype=torch.bfloat16)), random(2 * f, dtype=out_dtype)
        options = {"bias": bias, "activation": "swiglu", "out_dtype": out_dtype}
        found = [c for c in configs_of(CUDA, "persistent", prepare("matmul", a, b, **options).problem) if c["SPLIT_K"] == 1]
        assert all(c["BN"] % 16 == 0 and not c.get("SWAPPED") for c in found)
        run_checked(CUDA, "matmul", "persistent", a, b, config=found[turn * len(found) // 25], **options)


@pytest.mark.parametrize("library, design", [(TRITON, "pipelined"), (CUDA, "pipelined"), (CUDA, "cuda_cores")])
def test_every_tile_of_the_general_designs(library, design):
    dtype = torch.float32 if design == "cuda_cores" else torch.float16
    a, b, bias = random(40, 70, dtype=dtype), random(70, 2 * 37, dtype=dtype), random(2 * 37, dtype=dtype)
    options = {"bias": bias, "activation": "geglu"}
    for config in configs_of(library, design, prepare("matmul", a, b, **options).problem):
        run_checked(library, "matmul", design, a, b, config=config, **options)


@IN_BOTH
def test_which_column_is_which(package):
    """Exact: ReLU of the even column times the odd one."""
    b = torch.tensor([[2.0, 3.0, -2.0, 3.0, 5.0, -7.0]], dtype=torch.float16)
    result = package.matmul(torch.ones(2, 1, dtype=torch.float16), b, activation="reglu")
    assert torch.equal(result, torch.tensor([[6.0, 0.0, -35.0]] * 2, dtype=torch.float16))
    gate, value = random(5, 7, dtype=torch.float16), random(5, 7, dtype=torch.float16)
    pairs = package.interleave(gate, value)
    assert torch.equal(pairs[:, 0::2], gate) and torch.equal(pairs[:, 1::2], value) and pairs.is_contiguous()


@IN_BOTH
def test_what_is_no_number(package):
    """As of torch's functions: a gate of -inf makes NaN of SiLU, and 0 times an infinity."""
    a, b = torch.eye(4, dtype=torch.float16), torch.zeros(4, 4, dtype=torch.float16)
    b[0], b[1], b[2] = torch.nan, torch.tensor([-torch.inf, 1, torch.inf, 1]), torch.tensor([1, torch.nan, -1, torch.inf])
    a = torch.diag(torch.ones(4, dtype=torch.float16))
    for activation in GATED:
        for row in range(3):
            one = package.matmul(a[row : row + 1, row : row + 1], b[row : row + 1], activation=activation)
            exact = numerics.activated(b[row : row + 1].double(), activation)
            torch.testing.assert_close(one.double(), exact, equal_nan=True, rtol=2**-10, atol=0)


@IN_BOTH
def test_what_is_refused(package):
    a, b = random(5, 8, dtype=torch.float16), random(8, 6, dtype=torch.float16)
    with pytest.raises(ShapeError, match="2 F"):
        package.matmul(a, b[:, :5], activation="swiglu")
    with pytest.raises(ShapeError, match="2 F"):
        package.matmul(a, b[:, 0], activation="swiglu")
    with pytest.raises(ArgumentError, match="swiglu"):
        package.matmul(a, b, c=random(5, 3, dtype=torch.float16), activation="swiglu")
    with pytest.raises(ArgumentError, match="Did you mean 'swiglu'"):
        package.matmul(a, b, activation="swigul")
    with pytest.raises(ShapeError, match="bias"):
        package.matmul(a, b, bias=random(3, dtype=torch.float16), activation="swiglu")
    with pytest.raises(ShapeError, match="value"):
        package.interleave(b, b[:, :2])
    with pytest.raises(ShapeError, match="out"):
        package.matmul(a, b, out=torch.empty(5, 6, dtype=torch.float16), activation="swiglu")
    with pytest.raises(ArgumentError, match="activation"):
        package.matmul(torch.ones(4, 4, dtype=torch.int8), torch.ones(4, 4, dtype=torch.int8), activation="reglu")
    with pytest.raises(ArgumentError, match="activation"):
        package.conv2d(random(1, 2, 4, 4), random(2, 2, 3, 3), activation="swiglu")
    a.requires_grad_()  # the errors are those of a call that torch records, too
    with pytest.raises(ShapeError, match="2 F"):
        package.matmul(a, b[:, :5], activation="swiglu")
    with pytest.raises(ArgumentError, match="swiglu"):
        package.matmul(a, b, c=random(5, 3, dtype=torch.float16), activation="swiglu")
    with pytest.raises(ArgumentError, match="activation"):
        package.conv2d(random(1, 2, 4, 4).requires_grad_(), random(2, 2, 3, 3), activation="swiglu")


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
@pytest.mark.parametrize("sizes", [(1, 64, 64), (64, 1, 64), (128, 512, 4096), (4096, 14336, 4096)])
def test_a_call_gets_a_design_that_has_pairs(library, sizes):
    m, f, k = sizes
    for kind in ("fp16", "tf32", "ieee", "fp64"):
        dtype, options = KINDS[kind]
        meta = functools.partial(torch.empty, device="meta", dtype=dtype)
        problem = prepare("matmul", meta(m, k), meta(k, 2 * f), activation="swiglu", **options).problem
        found, refusals = library.candidates(problem, Target.named("h200"))
        assert {design.name for design, _ in found} <= {name for of, name in DESIGNS if of is library}
        assert "swiglu" in refusals["split_k"]
        with pytest.raises(UnsupportedError, match="no gated linear units"):
            library.ranking(problem, Target.named("h200"), "split_k")


def test_counts_of_work():
    """2 F columns of products, F of results; a call of plain columns is counted as before."""
    a, b = torch.empty(64, 32, dtype=torch.float16), torch.empty(32, 128, dtype=torch.float16)
    plain, gated = (prepare("matmul", a, b, activation=name).problem for name in ("silu", "swiglu"))
    assert gated.flops == plain.flops and plain.bytes - gated.bytes == 64 * 64 * 2
    assert (gated.row_bytes["out"], plain.row_bytes["out"]) == (128, 256)
    for library in LIBRARIES:
        design, target = {d.name: d for d in library.designs("matmul")}["pipelined"], Target.named("h200")
        config = next(iter(design.configs(gated, target)))
        (of_gated,), (of_plain,) = design.work(gated, config, target), design.work(plain, config, target)
        assert of_plain.dram - of_gated.dram == 64 * 64 * 2 and of_gated.flops == of_plain.flops
        assert of_gated.epilogue == of_plain.epilogue / 2


def expected(a, b, bias, activation):
    return numerics.activated(torch.matmul(a, b) + bias, activation)


@IN_BOTH
@pytest.mark.parametrize("activation", GATED)
def test_gradients_of_any_order(package, activation):
    a, b, bias = (random(*shape, dtype=torch.float64).requires_grad_() for shape in ((2, 3), (3, 4), (4,)))

    def call(a, b, bias):
        return package.matmul(a, b, bias=bias, activation=activation)

    torch.testing.assert_close(call(a, b, bias), expected(a, b, bias, activation))
    assert torch.autograd.gradcheck(call, (a, b, bias), fast_mode=True)
    assert torch.autograd.gradgradcheck(call, (a, b, bias), fast_mode=True)


@IN_BOTH
def test_a_recorded_result_is_near_the_fused_one(package):
    a, b = random(20, 30, dtype=torch.float16).requires_grad_(), random(30, 24, dtype=torch.float16)
    recorded, fused = package.matmul(a, b, activation="geglu"), package.matmul(a.detach(), b, activation="geglu")
    torch.testing.assert_close(recorded.detach(), fused, rtol=2**-8, atol=2**-7)
    recorded.backward(torch.ones_like(recorded))
    assert a.grad.shape == a.shape


@IN_BOTH
def test_transforms_of_torch(package):
    """vmap, also of a bias, which no design has for each matrix; meta tensors; compiled code; autocast; FLOP of products."""
    a, b, bias = random(3, 5, 8), random(3, 8, 6), random(3, 6)
    call = functools.partial(package.matmul, activation="swiglu")
    for dims in ((0, 0, None), (0, None, None), (None, 0, None), (None, 0, 0), (None, None, 0)):
        args = [t if dim == 0 else t[0] for t, dim in zip((a, b, bias), dims)]
        result = torch.vmap(lambda a, b, bias: call(a, b, bias=bias), dims)(*args)
        every = [t if dim == 0 else t.expand(3, *t.shape) for t, dim in zip(args, dims)]
        exact = expected(every[0], every[1], every[2][:, None], "swiglu")
        torch.testing.assert_close(result, exact, rtol=1e-5, atol=1e-5)
    assert call(a.to("meta"), b.to("meta")).shape == (3, 5, 3)
    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(a[0], b[0]), call(a[0], b[0]))
    with torch.autocast("cpu", torch.bfloat16):
        assert call(a[0], b[0]).dtype == torch.bfloat16
    with torch.utils.flop_counter.FlopCounterMode(display=False) as counter:
        call(a[0], b[0])
    assert counter.get_total_flops() == 2 * 5 * 8 * 6
    torch.library.opcheck(getattr(torch.ops, package.__name__).matmul.default, (a[0], b[0]), {"activation": "swiglu"})


@IN_BOTH
def test_ranks_do_not_part_pairs(package):
    a, b = torch.empty(4, 8), torch.empty(8, 6)
    labels = tritonkernels.matmul.__globals__["MATMUL"].rules.labels
    assert labels(a=a, b=b, c=None, activation="silu")["b"] == ("k", "n")
    found = labels(a=a, b=b, c=None, bias=torch.empty(6), activation="swiglu")
    assert found["b"] == ("k", None) and found["bias"] == (None,) and found["result"] == ("m", None)


@IN_BOTH
@pytest.mark.parametrize("bias", [False, True])
def test_a_module_of_two_linears(package, bias):
    """As a Llama's MLP has them: forward, gradients of both weights, state dict; and what it refuses."""
    gate, up = (torch.nn.Linear(8, 6, bias) for _ in range(2))
    module = package.nn.GatedLinear.from_linears(gate, up)
    x = random(2, 3, 8).requires_grad_()
    result, exact = module(x), torch.nn.functional.silu(gate(x)) * up(x)
    torch.testing.assert_close(result, exact)
    with torch.no_grad():
        torch.testing.assert_close(module(x), exact)
        torch.testing.assert_close(module(x[0, 0]), exact[0, 0])
    grad = random(2, 3, 6)
    (of_x,) = torch.autograd.grad(exact, x, grad, retain_graph=True)
    exact.backward(grad)
    result.backward(grad)
    torch.testing.assert_close(x.grad, 2 * of_x)
    for name, parameter in module.named_parameters():
        torch.testing.assert_close(parameter.grad[0::2], getattr(gate, name).grad)
        torch.testing.assert_close(parameter.grad[1::2], getattr(up, name).grad)
    other = package.nn.GatedLinear(8, 6, "swiglu", bias, precision="tf32")
    other.load_state_dict(module.state_dict())
    torch.testing.assert_close(other(x), exact, rtol=1e-2, atol=1e-2)
    assert "activation='swiglu'" in repr(other) and package.__name__ in repr(other)
    with pytest.raises(ArgumentError, match="activation"):
        package.nn.GatedLinear(8, 6, "silu")
    with pytest.raises(ShapeError, match="value"):
        package.nn.GatedLinear.from_linears(gate, torch.nn.Linear(8, 5, bias))
