"""numerics.judge: it must accept right results (torch's own included) and reject slightly wrong ones."""

from pathlib import Path

import pytest
import torch

from perf.render.modes import modes
from tests.harness import prepare
from tritonkernels import numerics

M, N, K = 33, 29, 64


def judge(op, computed, *args, **kwargs):
    return numerics.judge(prepare(op, *args, **kwargs).problem, computed, *args, **kwargs)


def test_gamma():
    assert numerics.gamma(0, 2**-24) == 0
    assert numerics.gamma(10, 2**-24) == pytest.approx(10 * 2**-24, rel=1e-5)
    assert numerics.gamma(2**24, 2**-24) == float("inf")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_torch_s_own_result_passes(dtype):
    a, b = torch.randn(M, K).to(dtype), torch.randn(K, N).to(dtype)
    assert judge("matmul", a @ b, a, b).ok


def test_torch_s_own_convolution_passes():
    x, w, bias = torch.randn(2, 3, 9, 8), torch.randn(4, 3, 3, 2), torch.randn(4)
    assert judge("conv2d", torch.nn.functional.conv2d(x, w, bias, padding=1), x, w, bias, padding=1).ok


def broken_results(a, b, exact):
    """Results of typical bugs, which must not pass as rounding errors."""
    zeros = torch.zeros_like(exact)
    rows = exact.clone()
    rows[[0, 1]] = rows[[1, 0]]
    unwritten = exact.clone()
    unwritten[-1, -1] = torch.nan
    one_off = exact.clone()
    one_off[3, 4] *= 1 + 1e-4
    tf32 = (a.view(torch.int32) & -8192).view(torch.float32), (b.view(torch.int32) & -8192).view(torch.float32)
    return {
        "zeros": zeros,
        "rows swapped": rows,
        "one element unwritten": unwritten,
        "one element off": one_off,
        "last product dropped": a[:, :-1] @ b[:-1],
        "tf32 for fp32": tf32[0] @ tf32[1],
        "fp16 accumulate": (a.half() @ b.half()).float(),
        "infinite": exact / 0.0,
        "transposed": exact.t(),
        "float64": exact.double(),
    }


@pytest.mark.parametrize("name", broken_results(torch.ones(9, K), torch.ones(K, 9), torch.ones(9, 9)))
def test_a_wrong_result_fails(name):
    a, b = torch.randn(M, K), torch.randn(K, N)
    exact = (a.double() @ b.double()).float()
    assert judge("gemm", exact, a, b).ok
    verdict = judge("gemm", broken_results(a, b, exact)[name], a, b)
    assert not verdict.ok and verdict.error > verdict.bound


def test_int8_is_exact():
    a, b = torch.randint(-128, 128, (M, K), dtype=torch.int8), torch.randint(-128, 128, (K, N), dtype=torch.int8)
    exact = (a.double() @ b.double()).int()
    assert judge("matmul", exact, a, b).ok
    exact[0, 0] += 1
    assert not judge("matmul", exact, a, b).ok


@pytest.mark.parametrize("precision, elements", [("int4", 2), ("uint4", 2), ("b1_xor", 8), ("b1_and", 8)])
def test_packed_operands_are_what_the_words_say(precision, elements):
    """Element by element from the definition: the first element in the low bits, int4 in two's complement."""
    a, b = torch.randint(0, 256, (3, 5), dtype=torch.uint8), torch.randint(0, 256, (5, 4), dtype=torch.uint8)

    def element(byte, j):
        value = int(byte) >> (8 // elements * j) & (2 ** (8 // elements) - 1)
        return value - 16 if precision == "int4" and value > 7 else value

    times = {"b1_xor": lambda x, y: x ^ y, "b1_and": lambda x, y: x & y}.get(precision, lambda x, y: x * y)
    exact = [
        [sum(times(element(a[i, k], e), element(b[k, j], e)) for k in range(5) for e in range(elements)) for j in range(4)]
        for i in range(3)
    ]
    exact = torch.tensor(exact, dtype=torch.int32)
    problem = prepare("matmul", a, b, precision=precision).problem
    assert (problem.k, problem.bytes) == (5 * elements, 15 + 20 + 4 * 12)
    assert judge("matmul", exact, a, b, precision=precision).ok
    exact[2, 3] += 1
    assert not judge("matmul", exact, a, b, precision=precision).ok


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu"])
def test_an_activation_s_slope_bounds_what_it_does_to_an_error(activation):
    function, slope = numerics.ACTIVATIONS[activation]
    x = torch.linspace(-20, 20, 400_001, dtype=torch.float64)
    steepest = (function(x).diff().abs() / x.diff()).max()
    assert 0.98 * slope < steepest <= slope


@pytest.mark.parametrize("activation", [None, "relu", "gelu", "silu"])
def test_the_epilogue_is_judged(activation):
    a, b, c, bias = torch.randn(M, K), torch.randn(K, N), torch.randn(N), torch.randn(N)
    options = {"alpha": -0.5, "beta": 2.0, "bias": bias, "activation": activation}
    function = numerics.ACTIVATIONS[activation][0] if activation else lambda x: x
    right = function(-0.5 * (a @ b) + 2.0 * c + bias)
    assert judge("matmul", right, a, b, c=c, **options).ok
    for forgotten in (-0.5 * (a @ b) + 2.0 * c, -0.5 * (a @ b) + bias, a @ b + 2.0 * c + bias):
        assert not judge("matmul", function(forgotten), a, b, c=c, **options).ok


def test_fp16_sums_are_judged_as_such():
    a, b = torch.randn(M, 2048).half(), torch.randn(2048, N).half()
    coarse = torch.zeros(M, N, dtype=torch.float16)
    for k in range(0, 2048, 16):
        coarse += (a[:, k : k + 16].float() @ b[k : k + 16].float()).half()
    assert judge("matmul", coarse, a, b, accumulate="fp16").ok
    assert not judge("matmul", coarse.float(), a, b, out_dtype=torch.float32).ok


def test_special_values_must_stand_where_they_belong():
    a, b = torch.randn(4, 5), torch.randn(5, 6)
    a[1, 2], a[2, 0] = torch.nan, torch.inf
    good = (a.double() @ b.double()).float()
    assert judge("gemm", good, a, b).ok
    assert not judge("gemm", good.nan_to_num(), a, b).ok
    wrong_sign = good.clone()
    wrong_sign[2] = -wrong_sign[2]
    assert not judge("gemm", wrong_sign, a, b).ok


def test_overflow_of_the_result_s_type_may_be_infinite_with_the_right_sign():
    a, b = torch.full((2, 4), 200.0).half(), torch.full((4, 2), -200.0).half()
    assert judge("matmul", torch.full((2, 2), -torch.inf).half(), a, b).ok
    assert not judge("matmul", torch.full((2, 2), torch.inf).half(), a, b).ok
    assert not judge("matmul", torch.full((2, 2), -60000.0).half(), a, b).ok


def test_the_bound_follows_the_formula():
    problem = prepare("matmul", torch.randn(3, 100), torch.randn(100, 2), precision="tf32").problem
    bound = numerics.error_bound(problem)
    assert bound.relative == pytest.approx(104 * 2**-23 / (1 - 104 * 2**-23) + 2**-10 + 2**-22)
    assert bound.store == 2**-24


def test_the_table_in_the_chapter_is_what_the_modes_give():
    """Each number of the table, such as 2^-7 + 2^-13, is read back and compared."""
    table = modes(4096)
    assert table in (Path(__file__).parents[2] / "docs/numerics.md").read_text(), "run: python -m perf docs"

    found = {}
    for line in table.splitlines()[2:]:
        names, *cells = line.strip("| ").split(" | ")
        numbers = [sum(2.0 ** float(x[2:]) if x[:2] == "2^" else float(x) for x in cell.split(" + ")) for cell in cells]
        found |= {name.strip("`"): numbers for name in names.split(", ")}
    for name, mode in numerics.MODES.items():
        planes = mode.products, mode.corrections, mode.dropped
        assert found[name][:-1] == [mode.inputs, mode.accumulate, mode.coarse, *planes], name
    for name, bound in {"ieee": 4100 * 2**-24, "fp16 into fp16": 4100 * 2**-11, "int8": 0}.items():
        assert found[name][-1] == pytest.approx(bound, rel=0.05)


def serial_convolution(x, w, stride, padding, dilation, groups):
    """The seed's CPU reference: loops over output channel, row, column, input channel and taps, one write per output."""
    n, _, h, wd = x.shape
    k, c_per_group, r, s = w.shape
    p = (h + 2 * padding[0] - dilation[0] * (r - 1) - 1) // stride[0] + 1
    q = (wd + 2 * padding[1] - dilation[1] * (s - 1) - 1) // stride[1] + 1
    out = torch.zeros(n, k, p, q, dtype=torch.float64)
    for i in range(n):
        for oc in range(k):
            for y in range(p):
                for z in range(q):
                    total = 0.0
                    for ic in range(c_per_group):
                        for u in range(r):
                            for v in range(s):
                                row = y * stride[0] + u * dilation[0] - padding[0]
                                col = z * stride[1] + v * dilation[1] - padding[1]
                                if 0 <= row < h and 0 <= col < wd:
                                    channel = oc // (k // groups) * c_per_group + ic
                                    total += float(x[i, channel, row, col]) * float(w[oc, ic, u, v])
                    out[i, oc, y, z] = total
    return out


def test_the_convolution_reference_is_the_seed_s_serial_loop():
    x, w = torch.randn(1, 4, 5, 6), torch.randn(4, 2, 2, 3)
    kwargs = {"stride": (1, 2), "padding": (2, 1), "dilation": (2, 1), "groups": 2}
    torch.testing.assert_close(numerics.reference("conv2d", x, w, **kwargs), serial_convolution(x, w, **kwargs))
    flipped = numerics.reference("conv2d", x, w.flip(-1), **kwargs)
    assert not torch.allclose(flipped, serial_convolution(x, w, **kwargs))


@pytest.mark.parametrize("op", ["gemm", "gemv", "matmul"])
def test_the_addend_counts_once_unless_beta_says_otherwise(op):
    """As in torch.addmm. With beta = 0 neither the reference nor the bound nor the problem may depend on it."""
    a, b = torch.randn(M, K), torch.randn(*((K,) if op == "gemv" else (K, N)))
    c = torch.randn((a @ b).shape)
    args, named = ((a, b), {"c": c}) if op == "matmul" else ((a, b, c), {})
    plain, added = numerics.reference(op, a, b), numerics.reference(op, *args, **named)
    torch.testing.assert_close(added, plain + c.double())
    for beta, wanted in ((None, added), (1, added), (0, plain), (-2.0, plain - 2 * c.double())):
        assert torch.equal(numerics.reference(op, *args, **named, beta=beta), wanted)
        assert prepare(op, *args, **named, beta=beta).problem.beta == (1 if beta is None else beta)
        assert judge(op, wanted.float(), *args, **named, beta=beta).ok
    assert prepare(op, a, b).problem.beta == 0 and prepare(op, a, b, beta=None).problem.beta == 0
