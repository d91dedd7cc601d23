"""Stand-ins for the packages of peers: what the adapters call of them, with the signatures of their documentation."""

import importlib.machinery
import sys
import types

import torch


def install(monkeypatch, name, **attributes):
    """A stand-in for a package, or for a module of one."""
    module = types.ModuleType(name)
    module.__spec__ = importlib.machinery.ModuleSpec(name, None)
    vars(module).update(attributes)
    monkeypatch.setitem(sys.modules, name, module)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module


class Matmul:
    def __init__(self, a, b, /, c=None, *, alpha=None, beta=None, options=None):
        assert (c is None) == (beta is None), "beta belongs to C"
        self.operands, self.scales, self.options, self.done = {"a": a, "b": b, "c": c}, (alpha, beta), options, []

    def plan(self, *, preferences=None):
        self.done.append(f"plan {preferences['limit']}")

    def autotune(self, iterations=10):
        self.done.append("autotune")

    def reset_operands(self, *, a=None, b=None, c=None, beta=None):
        self.operands = {"a": a, "b": b, "c": c}

    def execute(self):
        assert self.done == ["plan 32", "autotune"]
        (alpha, beta), (a, b, c) = self.scales, self.operands.values()
        product = alpha * (a.double() @ b.double())
        return (product if c is None else product + beta * c).to(a.dtype)

    def free(self):
        freed.append(self)


freed = []


def nvmath(monkeypatch):
    install(monkeypatch, "nvmath")
    install(monkeypatch, "nvmath.linalg")
    kinds = types.SimpleNamespace(COMPUTE_32F_FAST_TF32="tf32")
    install(monkeypatch, "nvmath.linalg.advanced", Matmul=Matmul, MatmulComputeType=kinds)


def flag_gems(monkeypatch):
    install(
        monkeypatch,
        "flag_gems",
        mm_out=lambda a, b, *, out: torch.mm(a, b, out=out),
        addmm=lambda bias, a, b, *, beta=1, alpha=1: torch.addmm(bias, a, b, beta=beta, alpha=alpha),
        mv=lambda a, x: torch.mv(a, x),
        conv2d=lambda input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1: torch.conv2d(
            input, weight, bias, stride, padding, dilation, groups
        ),
    )


def quack(monkeypatch):
    def gemm(A, B, out=None, bias=None, alpha=1.0):
        return out.copy_(alpha * (A.double() @ B.double()))

    def gemm_add(A, B, C, out=None, bias=None, alpha=1.0, beta=1.0):
        assert isinstance(alpha, float) and isinstance(beta, float), "else they are tensors"
        return out.copy_(alpha * (A.double() @ B.double()) + beta * C)

    install(monkeypatch, "quack")
    install(monkeypatch, "quack.gemm_interface", gemm=gemm, gemm_add=gemm_add)
    monkeypatch.setenv("QUACK_CACHE_AUTOTUNING", "1")


def torchao(monkeypatch):
    def addmm_float8_unwrapped_inference(a_data, a_scale, b_data, b_scale, output_dtype, use_fast_accum=False):
        assert use_fast_accum and a_scale.shape == b_scale.shape == (1, 1)
        return ((a_data.double() * a_scale) @ (b_data.double() * b_scale)).to(output_dtype)

    install(monkeypatch, "torchao")
    install(monkeypatch, "torchao.float8")
    module = "torchao.float8.inference"
    install(monkeypatch, module, addmm_float8_unwrapped_inference=addmm_float8_unwrapped_inference)


class Node:
    def __init__(self, compute):
        self.compute = compute

    def set_output(self, is_output):
        self.is_output = is_output
        return self

    def set_dim(self, dim):
        self.dim = dim
        return self

    def set_stride(self, stride):
        self.stride = stride
        return self


class Graph:
    """Four plans: one cannot be built, one cannot be executed, and the second of the others is faster."""

    def __init__(self, **options):
        assert options["compute_data_type"] == "FLOAT"
        self.steps, self.executed = [], []

    def __getattr__(self, name):
        return lambda *args: self.steps.append((name, *args))

    def tensor_like(self, tensor):
        node = Node(None)
        node.compute = lambda tensors: tensors[node]
        return node

    def conv_fprop(self, *, image, weight, padding, stride, dilation):
        def compute(tensors):
            x, w = image.compute(tensors), weight.compute(tensors)
            return torch.conv2d(x, w, None, stride, padding, dilation, x.shape[1] // w.shape[1])

        self.last = Node(compute)
        return self.last

    def bias(self, *, name, input, bias):
        self.last = Node(lambda tensors: input.compute(tensors) + bias.compute(tensors))
        return self.last

    def get_execution_plan_count(self):
        return 4

    def get_workspace_size_plan_at_index(self, index):
        if index == 0:
            raise RuntimeError("not built")
        return 16

    def execute_plan_at_index(self, tensors, workspace, index, handle=None):
        if index == 1:
            raise RuntimeError("not supported")
        assert [step for step, *_ in self.steps][-1] == "build_plans" and self.steps[-1][1] == "ALL"
        Clock.now += {2: 5.0, 3: 1.0}[index]
        self.executed.append(index)
        out = tensors[self.last]
        assert (self.last.dim, self.last.stride) == (list(out.shape), list(out.stride()))
        out.copy_(self.last.compute(tensors))


class Clock:
    """A stand-in for torch.cuda.Event."""

    now = 0.0

    def __init__(self, enable_timing):
        self.at = None

    def record(self):
        self.at = Clock.now

    def synchronize(self):
        pass

    def elapsed_time(self, later):
        return later.at - self.at


def cudnn(monkeypatch):
    graphs, streams = [], []
    install(
        monkeypatch,
        "cudnn",
        create_handle=lambda: "handle",
        set_stream=lambda handle, stream: streams.append(stream),
        pygraph=lambda **options: graphs.append(Graph(**options)) or graphs[-1],
        data_type=types.SimpleNamespace(HALF="HALF", BFLOAT16="BFLOAT16", FLOAT="FLOAT"),
        heur_mode=types.SimpleNamespace(A="A", FALLBACK="FALLBACK"),
        build_plan_policy=types.SimpleNamespace(ALL="ALL"),
        graphs=graphs,
    )
    monkeypatch.setattr(torch.cuda, "Event", Clock)
    monkeypatch.setattr(torch.cuda, "current_stream", lambda: types.SimpleNamespace(cuda_stream=7))


def nothing(monkeypatch):
    pass


PACKAGES = {
    "torch-eager": nothing,
    "torch-compile": nothing,
    "cublaslt": nvmath,
    "cudnn": cudnn,
    "flag-gems": flag_gems,
    "quack": quack,
    "torchao": torchao,
}
