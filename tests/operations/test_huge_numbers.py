"""Numbers that no kernel can take, of more than 32 or 64 bits or beyond float64: typed errors that name the argument."""

import fractions

import pytest
import torch

import cuda_reference
import tritonkernels
from tritonkernels import backend, errors

DEVICE = backend.device_type()
A, B, C, X, Y = (torch.randn(size, device=DEVICE) for size in ((4, 5), (5, 6), (4, 6), 5, 4))
IMAGE, FILTER, GRAD = (torch.randn(size, device=DEVICE) for size in ((1, 4, 9, 8), (4, 1, 3, 3), (1, 4, 7, 6)))
FAR = (2**31 - 1 - 9 - 1024) // 1026  # 9 + 2 FAR + 1024 (FAR + 1) is just below 2^31
CONVOLUTIONS = {  # with groups of a channel
    "conv2d": (IMAGE, FILTER),
    "conv2d_input": (IMAGE.shape, FILTER, GRAD),
    "conv2d_weight": (IMAGE, FILTER.shape, GRAD),
}
OF_CONVOLUTIONS = (
    {"stride": 2**21 - 1},
    {"padding": FAR + 513, "stride": FAR},
    {"padding": FAR, "dilation": FAR + 1},
    {"padding": 2**30},
    {"padding": "same", "dilation": 2**30},
    {"stride": 2**30},
    {"stride": 2**31},
    {"dilation": (2**63, 1)},
    {"padding": 2**64},
    {"stride": 10**5000},
    {"groups": 2**31},
    {"groups": 2**64},
)
CALLS = [
    *((op, args, {"groups": 4} | options) for op, args in CONVOLUTIONS.items() for options in OF_CONVOLUTIONS),
    *(
        (op, args, {name: number})
        for op, args in (("gemm", (A, B, C)), ("gemv", (A, X, Y)), ("matmul", (A, B)))
        for name in ("alpha", "beta")
        for number in (10**400, -(10**5000), fractions.Fraction(10**400))
    ),
]
SIZES = [
    *(("conv2d_input", (size, FILTER, GRAD)) for size in ((1, 4, 2**31, 8), (2**64, 4, 9, 8), (0, 4, 2**30, 2**30))),
    *(("conv2d_weight", (IMAGE, size, GRAD)) for size in ((4, 1, 2**31, 3), (2**64, 1, 3, 3), (0, 2**30, 2**30, 3))),
]


def refused(package, op, args, options, names):
    """The call raises our error that names one of the arguments: plainly, recorded, and through torch's dispatcher."""

    def call(requires_grad=False):
        given = (t.clone().requires_grad_(requires_grad) if isinstance(t, torch.Tensor) else t for t in args)
        with pytest.raises(errors.ArgumentError, match=rf"^({'|'.join(names)}): got .*; allowed: .*\."):
            getattr(package, op)(*given, **options)

    call()
    call(requires_grad=True)
    with torch.autograd.forward_ad.dual_level():
        call()


@pytest.mark.parametrize("op, args, options", CALLS)
@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda package: package.__name__)
def test_a_number_that_is_too_large(package, op, args, options):
    refused(package, op, args, options, [name for name in options if name != "groups" or len(options) == 1])


@pytest.mark.parametrize("op, args", SIZES)
@pytest.mark.parametrize("package", (tritonkernels, cuda_reference), ids=lambda package: package.__name__)
def test_a_size_that_is_too_large(package, op, args):
    refused(package, op, args, {"groups": 4}, ["input_size" if op == "conv2d_input" else "weight_size"])


def test_an_activation_that_is_none_with_gradients():
    with pytest.raises(errors.ArgumentError, match=r"^activation: got 'tanh'; allowed: "):
        tritonkernels.matmul(A.clone().requires_grad_(), B, activation="tanh")
