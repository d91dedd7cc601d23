"""Reject or correct: every bad call is a typed error that names the argument, and is raised before anything is written."""

import copy
import functools
import importlib
import pickle
import warnings

import pytest
import torch

import cuda_reference
import tritonkernels
from tritonkernels import backend, errors

f32 = functools.partial(torch.randn, device=backend.device_type())
A, B, C, X, Y = f32(4, 5), f32(5, 6), f32(4, 6), f32(5), f32(4)
IMAGE, FILTER = f32(1, 4, 8, 9), f32(6, 4, 3, 3)
RESIDUAL, ROWS = f32(1, 6, 6, 7), f32(1, 6, 7, 7)
BUFFER = f32(100)
with warnings.catch_warnings(action="ignore"):  # torch's, that the one is to go and the other to change
    QUANTIZED = torch.quantize_per_tensor(A, 0.1, 0, torch.qint8)
    NESTED, JAGGED = (torch.nested.nested_tensor([A, B[:, :5]], layout=kind) for kind in (torch.strided, torch.jagged))


def is_of_arguments(kind):
    return isinstance(kind, type) and issubclass(kind, errors.ArgumentError)


EVERY_ERROR = {
    errors.UnsupportedError: ("refused", {"naive": "why"}, "do this"),
    errors.LaunchError: ("message",),
} | {kind: ("a", torch.float16, (torch.float32,), "Convert it.") for kind in vars(errors).values() if is_of_arguments(kind)}


@pytest.mark.parametrize("again", (copy.copy, copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))))
@pytest.mark.parametrize("kind", EVERY_ERROR, ids=lambda kind: kind.__name__)
def test_errors_are_copied_and_pickled(kind, again):
    """As a pool of processes hands them on."""
    error = kind(*EVERY_ERROR[kind])
    found = again(error)
    assert type(found) is kind and str(found) == str(error) and found.args == error.args and vars(found) == vars(error)
    assert not hasattr(error, "_repr_html_") or found._repr_html_() == error._repr_html_()


# id: (op, args, kwargs, error, words that the message must contain)
BAD_CALLS = {
    "gemm: not a tensor": ("gemm", ([[1.0]], B), {}, errors.DtypeError, ["a:", "list", "torch.Tensor"]),
    "gemm: rank": ("gemm", (f32(2, 4, 5), B), {}, errors.ShapeError, ["a:", "rank 3", "rank 2"]),
    "gemm: inner": ("gemm", (A, f32(4, 6)), {}, errors.ShapeError, ["b:", "4", "5"]),
    "gemm: dtype": ("gemm", (A.half(), B.half()), {}, errors.DtypeError, ["a:", "float16", "float32", "float64"]),
    "gemm: dtype mix": ("gemm", (A, B.half()), {}, errors.DtypeError, ["b:", "float16", "float32"]),
    "gemm: double with single": ("gemm", (A.double(), B), {}, errors.DtypeError, ["b:", "float32", "float64", "of a"]),
    "gemm: c of single": ("gemm", (A.double(), B.double(), C), {}, errors.DtypeError, ["c:", "float32", "float64"]),
    "gemm: device mix": ("gemm", (A, B.to("meta")), {}, errors.DeviceError, ["b:", "meta", str(A.device)]),
    "gemm: beta without c": ("gemm", (A, B), {"beta": 1.0}, errors.ArgumentError, ["c:", "None", "beta"]),
    "gemm: c shape": ("gemm", (A, B, f32(6, 4)), {"beta": 1.0}, errors.ShapeError, ["c:", "(6, 4)", "(4, 6)"]),
    "gemm: c shape at beta 0": ("gemm", (A, B, f32(6, 4)), {"beta": 0}, errors.ShapeError, ["c:"]),
    "gemm: c rank": ("gemm", (A, B, f32(1, 4, 6)), {"beta": 1.0}, errors.ShapeError, ["c:", "rank 3"]),
    "gemm: alpha": ("gemm", (A, B), {"alpha": "1"}, errors.DtypeError, ["alpha:", "str"]),
    "gemm: complex alpha": ("gemm", (A, B), {"alpha": 1j}, errors.DtypeError, ["alpha:", "complex"]),
    "gemm: sparse": ("gemm", (A.to_sparse(), B), {}, errors.DtypeError, ["a:", "sparse"]),
    **{
        f"{op}: {argument} {kind}": (op, args, kwargs, errors.DtypeError, [f"{argument}: got a {kind} tensor", how])
        for value, kind, how in ((QUANTIZED, "quantized", ".dequantize()"), (NESTED, "nested", ".unbind()"))
        for op, argument, args, kwargs in (
            ("gemm", "a", (value, B), {}),
            ("matmul", "b", (A, value), {}),
            ("conv2d", "weight", (IMAGE, value), {}),
        )
    },
    "gemm: jagged": ("gemm", (JAGGED, B), {}, errors.DtypeError, ["a: got a nested tensor", ".unbind()"]),
    "gemm: out nested": ("gemm", (A, B), {"out": NESTED}, errors.DtypeError, ["out: got a nested tensor", "no out"]),
    "gemm: out sparse": ("gemm", (A, B), {"out": C.to_sparse()}, errors.DtypeError, ["out:", "torch.sparse_coo", "no out"]),
    "matmul: design renamed": (
        "matmul",
        (A, B),
        {"design": "mma_async"},
        errors.UnknownDesignError,
        ["design:", "allowed: ", "mma_async is called pipelined now."],
    ),
    "gemm: design": ("gemm", (A, B), {"design": "quick"}, errors.UnknownDesignError, ["design:", "quick", "naive", "tiled"]),
    "gemm: config": ("gemm", (A, B), {"config": {"BLOCK_M": 77, "BM": 77}}, errors.ConfigError, ["config:", "77", "64"]),
    "gemm: config type": ("gemm", (A, B), {"config": 128}, errors.ConfigError, ["config:", "int"]),
    "gemm: gradient": (
        "gemm",
        (A.clone().requires_grad_(), B),
        {"out": f32(4, 6)},
        errors.GradientError,
        ["a:", "out", "detach"],
    ),
    "gemm: out shape": ("gemm", (A, B), {"out": f32(4, 7)}, errors.ShapeError, ["out:", "(4, 7)", "(4, 6)"]),
    "gemm: out dtype": ("gemm", (A, B), {"out": C.double()}, errors.DtypeError, ["out:", "float64"]),
    "gemm: out device": ("gemm", (A, B), {"out": C.to("meta")}, errors.DeviceError, ["out:", "meta"]),
    "gemm: out is no tensor": ("gemm", (A, B), {"out": 3}, errors.DtypeError, ["out:", "int"]),
    "gemm: out is c turned": ("gemm", (A, B, C.view(6, 4).t()), {"out": C}, errors.OverlapError, ["out:", "shared with c"]),
    "gemm: out is a part of c": (
        "gemm",
        (A, B, BUFFER[1:25].view(4, 6)),
        {"out": BUFFER[:24].view(4, 6)},
        errors.OverlapError,
        ["shared with c"],
    ),
    "gemm: out is an expanded c": (
        "gemm",
        (A, B, C[:1]),
        {"out": C[:1].expand(4, 6)},
        errors.OverlapError,
        ["out:", "expanded"],
    ),
    "gemm: out is a row of c": ("gemm", (A, B, C[0]), {"out": C}, errors.OverlapError, ["out:", "shared with c"]),
    "gemm: out overlaps a": (
        "gemm",
        (BUFFER[:20].view(4, 5), B),
        {"out": BUFFER[19:43].view(4, 6)},
        errors.OverlapError,
        ["out:", "shared with a"],
    ),
    "gemm: out overlaps itself": ("gemm", (A, B), {"out": f32(4, 1).expand(4, 6)}, errors.OverlapError, ["out:", "expanded"]),
    "gemv: rank of x": ("gemv", (A, X[0]), {}, errors.ShapeError, ["x:", "rank 0", "rank 1"]),
    "gemv: rank of a": ("gemv", (X, X), {}, errors.ShapeError, ["a:", "rank 1", "rank 2"]),
    "gemv: batch": ("gemv", (f32(2, 4, 5), f32(3, 5)), {}, errors.ShapeError, ["x:", "(3,)", "(2,)"]),
    "gemv: dtype": ("gemv", (A.cfloat(), X.cfloat()), {}, errors.DtypeError, ["a:", "complex64", "int8", "float64"]),
    "gemv: dtype mix": ("gemv", (A, X.half()), {}, errors.DtypeError, ["x:", "float16", "float32"]),
    "gemv: int8 x": ("gemv", (A.char(), X.char()), {"scale": Y}, errors.DtypeError, ["x:", "int8", "float16"]),
    "gemv: double with single": ("gemv", (A, X.double()), {}, errors.DtypeError, ["x:", "float64", "float32", "of a"]),
    "gemv: int8 with doubles": ("gemv", (A.char(), X.double()), {"scale": Y}, errors.DtypeError, ["x:", "float64", "float16"]),
    "gemv: int8 without scale": ("gemv", (A.char(), X), {}, errors.DtypeError, ["scale:", "None", "int8"]),
    "gemv: scale of float32": ("gemv", (A, X), {"scale": Y}, errors.DtypeError, ["scale:", "float32"]),
    "gemv: dtype of scale": ("gemv", (A.char(), X), {"scale": Y.half()}, errors.DtypeError, ["scale:", "float16"]),
    "gemv: length of scale": ("gemv", (A.char(), X), {"scale": X}, errors.ShapeError, ["scale:", "(5,)", "(4,)"]),
    "gemv: dtype of y": ("gemv", (A.half(), X.half(), Y), {"beta": 1.0}, errors.DtypeError, ["y:", "float32", "float16"]),
    "gemv: inner": ("gemv", (A, f32(4)), {}, errors.ShapeError, ["x:", "4", "5"]),
    "gemv: y": ("gemv", (A, X, f32(5)), {"beta": 1.0}, errors.ShapeError, ["y:"]),
    "gemv: beta without y": ("gemv", (A, X), {"beta": 0.1}, errors.ArgumentError, ["y:", "None"]),
    "gemv: out begins with y": ("gemv", (A, X, BUFFER[:8:2]), {"out": BUFFER[:4]}, errors.OverlapError, ["shared with y"]),
    "matmul: scalar": ("matmul", (torch.tensor(1.0, device=A.device), B), {}, errors.ShapeError, ["a:", "rank 0"]),
    "matmul: dtype": ("matmul", (A.cfloat(), B.cfloat()), {}, errors.DtypeError, ["a:", "complex64", "int8"]),
    "matmul: dtype mix": ("matmul", (A.half(), B), {}, errors.DtypeError, ["b:", "float32", "float16"]),
    "matmul: batch": ("matmul", (f32(2, 4, 5).half(), f32(3, 5, 6).half()), {}, errors.ShapeError, ["b:", "(3,)", "(2,)"]),
    "matmul: precision": (
        "matmul",
        (A, B),
        {"precision": "tf23"},
        errors.ArgumentError,
        ["precision:", "tf23", "tf32", "ieee"],
    ),
    "matmul: precision of another dtype": (
        "matmul",
        (A.half(), B.half()),
        {"precision": "tf32"},
        errors.ArgumentError,
        ["fp16"],
    ),
    "matmul: out_dtype": (
        "matmul",
        (A.half(), B.half()),
        {"out_dtype": torch.int32},
        errors.DtypeError,
        ["out_dtype:", "int32"],
    ),
    "matmul: accumulate": ("matmul", (A, B), {"accumulate": "fp16"}, errors.ArgumentError, ["accumulate:", "fp16", "fp32"]),
    "matmul: activation": ("matmul", (A, B), {"activation": "tanh"}, errors.ArgumentError, ["activation:", "tanh", "gelu"]),
    "matmul: activation of integers": (
        "matmul",
        (A.char(), B.char()),
        {"activation": "gelu"},
        errors.ArgumentError,
        ["activation:", "gelu", "relu"],
    ),
    "matmul: alpha of integers": ("matmul", (A.char(), B.char()), {"alpha": 0.5}, errors.ArgumentError, ["alpha:", "whole"]),
    "matmul: packed": (
        "matmul",
        (A.byte(), B.byte()[:4]),
        {"precision": "int4"},
        errors.ShapeError,
        ["b:", "inner size 4", "5"],
    ),
    "matmul: bias": ("matmul", (A, B), {"bias": f32(4)}, errors.ShapeError, ["bias:", "(4,)", "(6,)"]),
    "matmul: bias rank": ("matmul", (A, B), {"bias": C}, errors.ShapeError, ["bias:", "rank 2"]),
    "matmul: bias dtype": (
        "matmul",
        (A.half(), B.half()),
        {"bias": f32(6).half(), "out_dtype": torch.float32},
        errors.DtypeError,
        ["bias:", "float16", "float32"],
    ),
    "matmul: beta without c": ("matmul", (A, B), {"beta": 1.0}, errors.ArgumentError, ["c:", "None", "beta"]),
    "matmul: c dtype": (
        "matmul",
        (
            A,
            B,
        ),
        {"c": C.half(), "beta": 1.0},
        errors.DtypeError,
        ["c:", "float16"],
    ),
    "matmul: out is a batch of c": (
        "matmul",
        (f32(3, 4, 5), B),
        {"c": BUFFER[:24].view(4, 6), "out": BUFFER[:72].view(3, 4, 6)},
        errors.OverlapError,
        ["shared with c"],
    ),
    "matmul: out is bias": (
        "matmul",
        (A[0], B),
        {"bias": C[0], "out": C[0]},
        errors.OverlapError,
        ["out:", "shared with bias"],
    ),
    "conv2d: rank": ("conv2d", (f32(8, 9), FILTER), {}, errors.ShapeError, ["input:", "rank 2"]),
    "conv2d: channels": ("conv2d", (IMAGE, f32(6, 3, 3, 3)), {}, errors.ShapeError, ["weight:", "(K, 4, R, S)"]),
    "conv2d: groups of input": ("conv2d", (IMAGE, f32(6, 1, 3, 3)), {"groups": 3}, errors.ArgumentError, ["groups:", "3", "4"]),
    "conv2d: groups of output": ("conv2d", (IMAGE, f32(6, 1, 3, 3)), {"groups": 4}, errors.ArgumentError, ["groups:", "6"]),
    "conv2d: no groups": ("conv2d", (IMAGE, FILTER), {"groups": 0}, errors.ArgumentError, ["groups:"]),
    "conv2d: bias": ("conv2d", (IMAGE, FILTER, f32(5)), {}, errors.ShapeError, ["bias:", "(5,)", "(6,)"]),
    "conv2d: activation": ("conv2d", (IMAGE, FILTER), {"activation": "tanh"}, errors.ArgumentError, ["activation:", "gelu"]),
    "conv2d: a list": ("conv2d", (IMAGE, FILTER), {"activation": ["relu"]}, errors.ArgumentError, ["activation: got ['relu']"]),
    "conv2d: residual of another shape": (
        "conv2d",
        (IMAGE, FILTER),
        {"residual": RESIDUAL[:, :1]},
        errors.ShapeError,
        ["residual:", "(1, 1, 6, 7)", "(1, 6, 6, 7)"],
    ),
    "conv2d: residual of another rank": (
        "conv2d",
        (IMAGE, FILTER),
        {"residual": RESIDUAL[0]},
        errors.ShapeError,
        ["residual:", "rank 3", "rank 4"],
    ),
    "conv2d: residual of another dtype": (
        "conv2d",
        (IMAGE, FILTER),
        {"residual": RESIDUAL.half()},
        errors.DtypeError,
        ["residual:", "float32, the dtype of input"],
    ),
    "conv2d: residual of another device": (
        "conv2d",
        (IMAGE, FILTER),
        {"residual": RESIDUAL.to("meta")},
        errors.DeviceError,
        ["residual:", "meta", "the device of input"],
    ),
    "conv2d: out overlaps the residual in part": (
        "conv2d",
        (IMAGE, FILTER),
        {"residual": ROWS[:, :, :6], "out": ROWS[:, :, 1:]},
        errors.OverlapError,
        ["out:", "shared with residual", "or residual itself"],
    ),
    "conv2d: out is the residual turned round": (
        "conv2d",
        (IMAGE[..., :8], FILTER),
        {"residual": RESIDUAL[..., :6], "out": RESIDUAL[..., :6].mT},
        errors.OverlapError,
        ["out:", "shared with residual"],
    ),
    "conv2d: empty filter": ("conv2d", (IMAGE, f32(6, 4, 0, 3)), {}, errors.ShapeError, ["weight:", "1 x 1"]),
    "conv2d: filter too large": (
        "conv2d",
        (IMAGE, f32(6, 4, 11, 3)),
        {"padding": 1},
        errors.ShapeError,
        ["weight:", "11 x 3", "10 x 11"],
    ),
    "conv2d: dilated too far": ("conv2d", (IMAGE, FILTER), {"dilation": 4}, errors.ShapeError, ["weight:", "9 x 9", "8 x 9"]),
    "conv2d: stride": ("conv2d", (IMAGE, FILTER), {"stride": 0}, errors.ArgumentError, ["stride:", "0", "at least 1"]),
    "conv2d: fractional stride": ("conv2d", (IMAGE, FILTER), {"stride": 1.5}, errors.ArgumentError, ["stride:"]),
    "conv2d: padding": ("conv2d", (IMAGE, FILTER), {"padding": (1, -1)}, errors.ArgumentError, ["padding:", "at least 0"]),
    "conv2d: padding name": (
        "conv2d",
        (IMAGE, FILTER),
        {"padding": "full"},
        errors.ArgumentError,
        ["padding:", "same", "valid"],
    ),
    "conv2d: same with a stride": (
        "conv2d",
        (IMAGE, FILTER),
        {"padding": "same", "stride": 2},
        errors.ArgumentError,
        ["padding:"],
    ),
    "conv2d: three strides": ("conv2d", (IMAGE, FILTER), {"stride": (1, 1, 1)}, errors.ArgumentError, ["stride:", "pair"]),
    "conv2d: precision": ("conv2d", (IMAGE, FILTER), {"precision": "fp16"}, errors.ArgumentError, ["precision:", "tf32"]),
    "conv2d: precision of another dtype": (
        "conv2d",
        (IMAGE.half(), FILTER.half()),
        {"precision": "tf32"},
        errors.ArgumentError,
        ["precision:", "tf32", "fp16"],
    ),
    "conv2d_input: precision": (
        "conv2d_input",
        ((1, 4, 8, 9), FILTER, f32(1, 6, 6, 7)),
        {"precision": "bf16"},
        errors.ArgumentError,
        ["precision:", "tf32"],
    ),
    "conv2d_weight: precision of another dtype": (
        "conv2d_weight",
        (IMAGE.half(), (6, 4, 3, 3), f32(1, 6, 6, 7).half()),
        {"precision": "torch"},
        errors.ArgumentError,
        ["precision:", "torch", "fp16"],
    ),
    "conv2d: out is input": ("conv2d", (IMAGE, f32(4, 4, 1, 1)), {"out": IMAGE}, errors.OverlapError, ["out:", "input"]),
}


@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda p: p.__name__)
@pytest.mark.parametrize("name", BAD_CALLS)
def test_bad_calls_are_typed_errors(package, name):
    op, args, kwargs, error, words = BAD_CALLS[name]
    out = kwargs.get("out")
    before = out.clone() if type(out) is torch.Tensor and out.device.type != "meta" and not out.is_nested else None
    with pytest.raises(error) as caught:
        getattr(package, op)(*args, **kwargs)
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert isinstance(caught.value, errors.TritonKernelsError)
    assert caught.value.remedy and str(caught.value).endswith(caught.value.remedy), "it ends with what to do"
    if before is not None:
        assert torch.equal(out.to_dense(), before.to_dense())


def test_errors_have_the_types_that_torch_users_catch():
    assert issubclass(errors.ShapeError, ValueError) and issubclass(errors.DtypeError, TypeError)
    assert issubclass(errors.UnsupportedError, NotImplementedError) and issubclass(errors.BuildError, RuntimeError)


WHAT_TO_DO = {  # id: (a call, the end of its error)
    "gemm of float16": (lambda: tritonkernels.gemm(A.half(), B.half()), "For float16, call matmul."),
    "gemm of a batch": (lambda: tritonkernels.gemm(f32(2, 4, 5), B), "For rank 3, call matmul."),
    "gemv of fp8": (lambda: tritonkernels.gemv(A.to(torch.float8_e5m2), X), "For float8_e5m2, call matmul."),
    "conv2d of int32": (lambda: tritonkernels.conv2d(IMAGE.int(), FILTER), "Convert it with .to(torch.float32)."),
    "no batch": (lambda: tritonkernels.conv2d(IMAGE[0, 0], FILTER), "Add dimensions with .unsqueeze()."),
    "another type": (lambda: tritonkernels.gemm(A, B.half().double()), "Call .to(a.dtype)."),
    "transposed": (lambda: tritonkernels.gemm(A, B.mT), "Is one transposed? Pass its .mT."),
    "a design misspelt": (
        lambda: tritonkernels.gemm(A, B, design="tield"),
        "Did you mean 'tiled'? tritonkernels.designs('gemm') says what each does.",
    ),
    "an operation misspelt": (lambda: cuda_reference.designs("mat_mul"), "Did you mean 'matmul'?"),
    "a precision misspelt": (lambda: tritonkernels.matmul(A, B, precision="fp16-x3"), "Did you mean 'fp16x3'?"),
    "a precision of matmul": (lambda: tritonkernels.conv2d(IMAGE, FILTER, precision="tf32x3"), "Pass one of these."),
    "that one misspelt": (lambda: cuda_reference.conv2d(IMAGE, FILTER, precision="tf32_x3"), "Pass one of these."),
    "a module's precision": (lambda: tritonkernels.nn.Conv2d(4, 6, 3, precision="tf32x3"), "Pass one of these."),
    "conv2d's own precision misspelt": (lambda: tritonkernels.conv2d(IMAGE, FILTER, precision="tf23"), "Did you mean 'tf32'?"),
    "the only precision": (lambda: tritonkernels.conv2d(IMAGE.half(), FILTER.half(), precision="x"), "or leave it out."),
    "a target misspelt": (lambda: tritonkernels.explain("gemm", A, B, target="h2000"), "did you mean 'h200'?"),
    "a refusal of one design": (
        lambda: tritonkernels.explain("gemm", A.double(), B.double(), design="split_k"),
        "matmul.pipelined or matmul.split_k, or none: then the fastest of them is chosen.",
    ),
    "a refusal of all": (
        lambda: cuda_reference.explain("matmul", A.to(torch.float8_e5m2), B.to(torch.float8_e5m2), target="a100"),
        "Change what they refuse, or leave this call to torch.",
    ),
}


@pytest.mark.parametrize("name", WHAT_TO_DO)
def test_errors_end_with_what_to_do(name):
    call, end = WHAT_TO_DO[name]
    with pytest.raises(errors.TritonKernelsError) as caught:
        call()
    assert str(caught.value).endswith(end), str(caught.value)


@pytest.mark.parametrize("activation", ("tanh", ["relu"]), ids=str)
def test_activations_of_calls_with_gradients(activation):
    for function, operands in ((tritonkernels.matmul, (A, B)), (tritonkernels.conv2d, (IMAGE, FILTER))):
        with pytest.raises(errors.ArgumentError, match=r"^activation: got .*gelu"):
            function(operands[0].clone().requires_grad_(), operands[1], activation=activation)


@pytest.mark.parametrize("op", ("gemm", "gemv"))
def test_the_types_and_ranks_for_which_matmul_is_recommended_are_its_own(op):
    elsewhere = importlib.import_module(f"tritonkernels.operations.{op}.prepare").ELSEWHERE
    for named in elsewhere:
        a = torch.empty([1] * named if isinstance(named, int) else [2, 2], device="meta")
        a = a if isinstance(named, int) else a.to(named)
        assert tritonkernels.explain("matmul", a, a, target="h200")["design"]


def test_an_unknown_config_gets_the_nearest_legal_ones():
    with pytest.raises(errors.ConfigError) as caught:
        tritonkernels.gemm(A, B, design="rasterized", config={"BLOCK_M": 65, "BLOCK_N": 64})
    legal = tritonkernels.configs("gemm", A, B, design="rasterized")
    lines = [line.strip() for line in str(caught.value).splitlines() if line.startswith("    ")]
    assert 0 < len(lines) < len(legal) and set(lines) < set(map(str, legal))
    nearest = legal[[str(config) for config in legal].index(lines[0])]
    assert (nearest["BLOCK_M"], nearest["BLOCK_N"]) == (64, 64)
    assert f"one of the {len(legal)} configs of rasterized" in str(caught.value)


def test_a_refusal_gives_each_design_s_reason():
    with pytest.raises(errors.UnsupportedError, match=r"naive: it has no fp8; tiled: ") as caught:
        cuda_reference.explain("matmul", A.to(torch.float8_e5m2), B.to(torch.float8_e5m2), target="a100")
    assert set(caught.value.refusals) == {d.name for d in cuda_reference.designs("matmul")}
    assert caught.value.refusals["naive"] == "it has no fp8"


def test_operands_that_require_gradients_are_fine_under_no_grad():
    a = A.clone().requires_grad_()
    with torch.no_grad():
        result = tritonkernels.gemm(a, B)
    torch.testing.assert_close(result, A @ B)


def test_disjoint_views_of_one_buffer_are_no_overlap():
    """Interleaved columns share an address range but no element."""
    buffer = f32(4, 12)
    a, out = buffer[:, ::2][:, :5], buffer[:, 1::2]
    expected = a @ B
    torch.testing.assert_close(tritonkernels.gemm(a, B, out=out), expected)


def test_lazily_negated_views_are_read_with_their_sign():
    z = torch.randn(4, 5, dtype=torch.complex64, device=A.device)
    negated = z.conj().imag
    assert negated.is_neg()
    torch.testing.assert_close(tritonkernels.gemm(negated, B), -(z.imag) @ B)
