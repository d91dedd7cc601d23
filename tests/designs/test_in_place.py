"""Every design of products writes over its addend: `out` may be c, of gemv y, as in torch.addmm and BLAS."""

import pytest

from tests.harness import (
    DEVICES,
    assert_poisoned_outside,
    available_on,
    designs,
    one_of_each_program,
    poisoned,
    prepare,
    random,
    taken,
    transposed,
)

pytestmark = pytest.mark.parametrize("device", DEVICES)
OPTIONS = {"alpha": -1.5, "beta": 0.5}


def over_addend(library, op, design, name, *factors, **options):
    options = OPTIONS | options
    plain = prepare(op, *factors, **options | {"beta": 0.0}).result
    addend, buffer, where = poisoned(plain.shape, plain.dtype, plain.device)
    addend.copy_(random(*plain.shape, dtype=plain.dtype, device=plain.device))
    before = addend.clone()
    call = prepare(op, *factors, **options, **{name: addend, "out": addend})
    assert library.run(call, design) is addend
    assert library.judge(call, design, None, *factors, **options, **{name: before}).ok
    assert_poisoned_outside(buffer, where)


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("gemm"))
@pytest.mark.parametrize("sizes", [(129, 67, 40), (64, 132, 300)], ids=str)
def test_gemm(library, op, design, device, sizes):
    available_on(library, device)
    m, n, k = sizes
    over_addend(library, op, design, "c", random(m, k, device=device), random(k, n, device=device))


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("gemv"))
@pytest.mark.parametrize("shape", [(300, 17), (2, 3, 1030)], ids=str)
def test_gemv(library, op, design, device, shape):
    available_on(library, device)
    a, x = random(*shape, device=device), random(*shape[:-2], shape[-1], device=device)
    over_addend(library, op, design, "y", a, x)
    over_addend(library, op, design, "y", transposed(a), x)


@one_of_each_program
@pytest.mark.parametrize("library, op, design", designs("matmul"))
@pytest.mark.parametrize("shape", [(2, 65, 27, 16), (1, 129, 136, 520)], ids=str)
def test_matmul(library, op, design, device, shape):
    available_on(library, device)
    dtype, options = taken(library, op, design)
    batch, m, n, k = shape
    a, b = random(batch, m, k, dtype=dtype, device=device), random(batch, k, n, dtype=dtype, device=device)
    over_addend(library, op, design, "c", a, b, **options)
