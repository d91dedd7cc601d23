"""Dimensions of one may have any stride: it leads nowhere, and no kernel or TMA descriptor gets it."""

import pytest
import torch

import cuda_reference
import tritonkernels
from cuda_reference.launch import TensorMap
from tests.harness import LIBRARIES, prepare, random, sentinel
from tritonkernels import backend
from tritonkernels.launch import TritonLaunch
from tritonkernels.target import Target

ANY = 2**60  # in bytes it overflows, and so do the offsets of a second and a third element
CALLS = (
    ("gemm", ((1, 7), (7, 6), (1, 6))),
    ("gemm", ((5, 1), (1, 6), (5, 1))),
    ("gemm", ((5, 7), (7, 1), (5, 1))),
    ("gemv", ((1, 8), (8,), (1,))),
    ("gemv", ((1, 5, 1), (1, 1), (1, 5))),
    ("matmul", ((1, 16), (16, 24))),
    ("matmul", ((8, 1), (1, 24))),
    ("matmul", ((1, 8, 16), (3, 16, 1))),
    ("matmul", ((3, 1, 8, 16), (1, 1, 16, 24))),
    ("conv2d", ((1, 3, 6, 5), (4, 3, 3, 3))),
    ("conv2d", ((2, 1, 6, 1), (1, 1, 3, 1))),
    ("conv2d", ((1, 8, 1, 5), (8, 8, 1, 1))),
    ("conv2d_input", (torch.Size((1, 3, 6, 1)), (1, 3, 3, 1), (1, 1, 4, 1))),
    ("conv2d_weight", ((2, 1, 6, 1), torch.Size((4, 1, 3, 1)), (2, 4, 4, 1))),
    ("conv2d_bias", ((1, 4, 1, 4),)),
)


def with_idle_strides(t):
    return t.as_strided(t.shape, [ANY if size == 1 else stride for size, stride in zip(t.shape, t.stride())])


def given(shapes, dtype=torch.float32, device="cpu"):
    made = (s if isinstance(s, torch.Size) else random(*s, dtype=dtype, device=device) for s in shapes)
    return [with_idle_strides(t) if isinstance(t, torch.Tensor) else t for t in made]


def out_of(op, args, **options):
    like = prepare(op, *args, **options).result
    return with_idle_strides(torch.full_like(like, sentinel(like.dtype)))


@pytest.mark.parametrize("op, shapes", CALLS)
def test_kernels_do_not_get_them(op, shapes):
    args = given(shapes)
    call = prepare(op, *args, out=out_of(op, args))
    tensors = [t for part in call.parts for t in part if t is not None]
    assert all(max(t.stride(), default=0) <= 1024 for t in tensors)
    assert max(map(max, (t.stride() for t in args if isinstance(t, torch.Tensor)))) == ANY, "the test has such a stride"


@pytest.mark.parametrize("op, shapes", CALLS)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.package)
def test_results(library, op, shapes):
    """A call made three times: the last repeats a plan, if there is one."""
    package = {"tritonkernels": tritonkernels, "cuda_reference": cuda_reference}[library.package]
    device = backend.device_type() if package is tritonkernels else "cpu"
    args = given(shapes, device=device)
    for _ in range(3):
        out = out_of(op, args)
        assert getattr(package, op)(*args, out=out) is out
        call = prepare(op, *args, out=out)
        verdict = library.judge(call, library.choose(call.problem, library.target(out.device))[0], None, *args)
        assert verdict.ok, verdict


TMA = [("tritonkernels", "persistent"), ("tritonkernels", "warp_specialized"), ("cuda_reference", "persistent")]


def maps(launch):
    """(strides, bytes of an element) of the TMA descriptors of a launch."""
    if isinstance(launch, TritonLaunch):
        from tritonkernels.language.descriptor import is_descriptor

        return [(d.strides[:-1], d.base.element_size()) for d in launch.values.values() if is_descriptor(d)]
    return [(m.wire()[6:8], m.wire()[1]) for m in launch.arguments if isinstance(m, TensorMap) and m.tensor.numel()]


@pytest.mark.parametrize(
    "shapes", ([(1, 16), (16, 24)], [(8, 16), (16, 1)], [(1, 8, 16), (1, 16, 24)], [(2, 1, 64), (1, 64, 8)])
)
@pytest.mark.parametrize("package, design", TMA)
def test_descriptors(package, design, shapes):
    library = next(one for one in LIBRARIES if one.package == package)
    chosen = next(d for d in library.designs("matmul") if d.name == design)
    args = given(shapes, torch.float16)
    args += [with_idle_strides(random(*(args[0] @ args[1]).shape, dtype=torch.float16))]
    a, b, c = args
    call = prepare("matmul", a, b, c=c, out=out_of("matmul", (a, b)))
    found = []
    for part in call.parts:
        config = next(iter(chosen.configs(call.problem, Target.named("h200"))))
        found += [one for launch in chosen.launches(call.problem, config, *part) for one in maps(launch)]
    assert found
    assert all(0 <= stride * size < 2**20 and stride * size % 16 == 0 for strides, size in found for stride in strides)
