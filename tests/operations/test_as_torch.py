"""We do what torch does: `out` counts as modified, an addend is added. tests/torch_ops has what torch does with operators."""

import inspect

import pytest
import torch

import cuda_reference
import tritonkernels
from tests.harness import DEVICES, SMALL, available_on, built, prepare, random
from tritonkernels import OPS
from tritonkernels.errors import ArgumentError

LIBRARIES = {tritonkernels: tritonkernels.launch.LIBRARY, cuda_reference: cuda_reference.launch.LIBRARY}
both_packages = pytest.mark.parametrize("package", LIBRARIES, ids=lambda p: p.__name__)
every_op = pytest.mark.parametrize("op", OPS)
on_devices = pytest.mark.parametrize("device", DEVICES)


@pytest.fixture
def arguments(package, op, device):
    """The arguments of a small call, by name, without an out."""
    available_on(LIBRARIES[package], device)
    dtype = torch.float16 if op == "matmul" else torch.float32
    values = built(SMALL[op], lambda *shape: random(*shape, dtype=dtype, device=device))
    return dict(zip(inspect.signature(getattr(package, op)).parameters, values))


@pytest.fixture
def repeated(package, repeats_of):
    return repeats_of(LIBRARIES[package])


def repeats(package, device):
    """Whether calls are repeated from plans: not in Triton's interpreter."""
    return package is cuda_reference or device == "cuda"


@every_op
@both_packages
@on_devices
@pytest.mark.parametrize("is_view", (False, True), ids=("whole", "view"))
def test_out_counts_as_modified(package, op, device, is_view, arguments, repeated):
    """Backward raises for a saved tensor that was an `out`, as in torch, on a first call and on one from a plan."""
    wanted = prepare(op, **arguments).result
    saved = torch.zeros(2, *wanted.shape, dtype=wanted.dtype, device=device)[0 if not is_view else slice(None)]
    out = saved[1] if is_view else saved

    def loss():
        return (torch.ones_like(saved, requires_grad=True) * saved).sum()

    def ours():
        assert getattr(package, op)(**arguments, out=out) is out

    for write in (ours, ours, ours, lambda: torch.zeros(out.shape, out=out)):
        stale = loss()
        write()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            stale.backward()
    loss().backward()
    assert repeated == [True] * repeats(package, device)


@both_packages
@on_devices
def test_an_inference_tensor_has_no_version_to_count(package, device):
    available_on(LIBRARIES[package], device)
    a, x = random(8, 8, device=device), random(8, device=device)
    with torch.inference_mode():
        out = torch.empty(8, device=device)
        package.gemv(a, x, out=out)
    torch.testing.assert_close(package.gemv(a, x, out=out), a @ x)


@both_packages
@on_devices
def test_an_addend_is_added(package, device):
    """beta is 1 by default if there is an addend, as in torch; 0 never reads the addend, and other values need one."""
    available_on(LIBRARIES[package], device)
    a, b, c, x, y = (random(*shape, device=device) for shape in ((5, 7), (7, 6), (5, 6), (7,), (5,)))
    half = [t.half() for t in (a, b, c)]
    torch.testing.assert_close(package.gemm(a, b, c), torch.addmm(c, a, b))
    torch.testing.assert_close(package.gemv(a, x, y), torch.addmv(y, a, x))
    torch.testing.assert_close(package.matmul(*half[:2], c=half[2]), torch.addmm(half[2], *half[:2]))
    nan = torch.full_like(c, torch.nan)
    torch.testing.assert_close(package.gemm(a, b, nan, beta=0), torch.addmm(nan, a, b, beta=0))
    torch.testing.assert_close(package.gemv(a, x, nan[:, 0], beta=0.0), torch.addmv(nan[:, 0], a, x, beta=0))
    torch.testing.assert_close(package.matmul(*half[:2], c=nan.half(), beta=0), half[0] @ half[1])
    for call in (lambda: package.gemm(a, b, beta=1), lambda: package.gemv(a, x, beta=1), lambda: package.matmul(a, b, beta=1)):
        with pytest.raises(ArgumentError, match=r"^[cy]: got None"):
            call()
