"""The peers' adapters: the calls that they make, of stand-ins for packages that are not installed, and what they refuse."""

import gc
import importlib
import json
import subprocess
import sys

import pytest
import torch
from peer_packages import PACKAGES, Matmul, freed, nvmath, quack

from perf.measure import baselines
from perf.measure.cases import conv2d, gemm, gemv, matmul
from perf.measure.peers import PEERS, torch_eager
from perf.measure.peers.peer import Peer
from tests.harness import thorough
from tritonkernels import numerics
from tritonkernels.errors import UnsupportedError

CPU = torch.device("cpu")
HALF, BRAIN, FP8 = torch.float16, torch.bfloat16, torch.float8_e4m3fn
IMAGE = conv2d((2, 4, 9, 8), (6, 2, 3, 3), bias=True, stride=2, padding=(1, 0), groups=2)


def drawn(case):
    args, kwargs = case.arguments(0, CPU)
    return importlib.import_module(f"tritonkernels.{case.op}").prepare(*args, **kwargs), args, kwargs


@pytest.mark.parametrize(
    "name, case",
    [
        ("torch-eager", gemm(9, 8, 7, alpha=2.0, beta=0.5)),
        ("torch-eager", IMAGE),
        pytest.param("torch-compile", gemm(9, 8, 7), marks=thorough),
        pytest.param("torch-compile", gemm(9, 8, 7, alpha=2.0), marks=thorough),
        ("torch-compile", gemm(9, 8, 7, alpha=2.0, beta=0.5)),
        pytest.param("torch-compile", gemv(9, 8), marks=thorough),
        pytest.param("torch-compile", gemv(9, 8, alpha=2.0), marks=thorough),
        pytest.param("torch-compile", gemv(9, 8, alpha=2.0, beta=0.5), marks=thorough),
        ("torch-compile", IMAGE),
        ("cublaslt", gemm(9, 8, 7, alpha=2.0)),
        ("cublaslt", gemm(9, 8, 7, beta=0.5)),
        ("cublaslt", matmul(9, 8, 7, BRAIN)),
        ("cudnn", IMAGE),
        ("cudnn", conv2d((2, 4, 9, 8), (6, 4, 3, 3), "channels_last", HALF)),
        ("flag-gems", gemm(9, 8, 7)),
        ("flag-gems", gemm(9, 8, 7, alpha=2.0, beta=0.5)),
        ("flag-gems", gemv(9, 8)),
        ("flag-gems", IMAGE),
        ("quack", matmul(9, 8, 7, HALF)),
        ("quack", matmul(9, 8, 7, HALF, alpha=2)),
        ("torchao", matmul(16, 32, 48, FP8, b="col", out_dtype=BRAIN)),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_the_adapters_call_their_packages(monkeypatch, name, case):
    """Twice, with other operands: nothing of the first ones is kept. `out` is written where the adapter says so."""
    PACKAGES[name](monkeypatch)
    prepared, args, kwargs = drawn(case)
    call, writes_out = PEERS[name].build(prepared.problem, *args, **kwargs)
    for seed in (0, 1):
        args, kwargs = case.arguments(seed, CPU)
        out = torch.full_like(prepared.result, torch.nan)
        computed = call(*args, out=out, **kwargs)
        assert numerics.judge(prepared.problem, computed, *args, **kwargs).ok
        assert (computed.data_ptr() == out.data_ptr()) == writes_out
    if name == "cudnn":
        assert sys.modules["cudnn"].graphs[0].executed == [2] * 11 + [3] * 11 + [3, 3], "the search, then the faster plan"
    if name == "cublaslt":
        freed.clear()
        del call
        gc.collect()
        assert len(freed) == 1


def test_cublaslt_multiplies_in_the_precision_of_the_case(monkeypatch):
    nvmath(monkeypatch)
    made = []
    monkeypatch.setattr(Matmul, "free", lambda self: made.append(self.options))
    for case in (matmul(9, 8, 7, precision="tf32"), matmul(9, 8, 7, precision="ieee"), matmul(9, 8, 7, precision="tf32x3")):
        prepared, args, kwargs = drawn(case)
        call, _ = PEERS["cublaslt"].build(prepared.problem, *args, **kwargs)
        call(*args, out=prepared.result, **kwargs)
        del call
        gc.collect()
    assert made == [{"compute_type": "tf32"}, {}, {}]


@pytest.mark.parametrize(
    "name, case, why",
    [
        ("torch-compile", matmul(9, 8, 7, torch.int8), "not compared in products of torch.int8 into torch.int32"),
        ("torch-compile", matmul(9, 8, 7, HALF, activation="relu"), "without activation"),
        ("torch-compile", gemv(9, 8, batch=(3,)), "a floating-point matrix and a vector"),
        ("cublaslt", gemv(9, 8), "not compared in gemv"),
        ("cublaslt", matmul(9, 8, 7, HALF, batch=(3,)), "not for batches"),
        ("cudnn", gemm(9, 8, 7), "not compared in gemm"),
        ("cudnn", conv2d((2, 4, 9, 8), (6, 4, 3, 3), dtype=torch.float64), "not compared in convolutions of torch.float64"),
        ("cudnn", conv2d((2, 4, 9, 8), (6, 4, 3, 4), padding="same"), "no padding by name"),
        ("flag-gems", gemm(9, 8, 7, alpha=2.0), "no alpha"),
        ("flag-gems", gemv(9, 8, alpha=2.0), "without alpha and beta"),
        ("flag-gems", gemm(9, 8, 7, dtype=torch.float64), "torch.float64"),
        ("quack", gemm(9, 8, 7), "not compared in products of torch.float32"),
        ("torchao", matmul(9, 8, 7, HALF), "products of fp8"),
        ("torchao", matmul(16, 32, 48, FP8, out_dtype=BRAIN), "contiguous along K"),
        ("torchao", matmul(16, 8, 48, FP8, b="col", out_dtype=BRAIN), "divisible by 16"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_refusals(monkeypatch, name, case, why):
    PACKAGES[name](monkeypatch)
    prepared, args, kwargs = drawn(case)
    with pytest.raises(UnsupportedError, match=why):
        PEERS[name].build(prepared.problem, *args, **kwargs)


def test_what_is_missing(monkeypatch):
    assert PEERS["torch-eager"].missing(CPU) is PEERS["torch-compile"].missing(CPU) is None
    assert Peer("x", "no_such_package", None).missing(CPU) == "the Python package no_such_package is not installed"
    quack(monkeypatch)
    assert PEERS["quack"].missing(CPU) == "it needs an NVIDIA GPU"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 6))
    assert PEERS["quack"].missing(torch.device("cuda")) == "it needs compute capability 9.0 or later"
    assert Peer("x", "quack", None).missing(torch.device("cuda")) is None


def test_eager_has_the_switches_of_a_new_process(monkeypatch):
    """Also within a comparison, which sets others."""
    seen = []

    def look(*args, out, **kwargs):
        seen.append([getattr(owner, name) for owner, name, _ in torch_eager.DEFAULTS])
        return out

    monkeypatch.setitem(baselines.BASELINES, "gemm", (("look", look, True),))
    prepared, args, kwargs = drawn(gemm(9, 8, 7))
    call, _ = PEERS["torch-eager"].build(prepared.problem, *args, **kwargs)
    with baselines.precision("ieee"):
        inside = [getattr(owner, name) for owner, name, _ in torch_eager.DEFAULTS]
        call(*args, out=prepared.result, **kwargs)
        assert inside == [getattr(owner, name) for owner, name, _ in torch_eager.DEFAULTS] != seen[0]
    names = ("matmul.fp32_precision", "cudnn.conv.fp32_precision", "matmul.allow_fp16_reduced_precision_reduction")
    names += ("matmul.allow_bf16_reduced_precision_reduction", "cudnn.benchmark")
    imports = "import json; from torch.backends import cudnn; from torch.backends.cuda import matmul"
    fresh = f"{imports}; print(json.dumps([{', '.join(names)}]))"
    printed = subprocess.run([sys.executable, "-c", fresh], capture_output=True, text=True, check=True).stdout
    assert seen == [json.loads(printed)]
