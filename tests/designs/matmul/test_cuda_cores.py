"""cuda_cores: the IEEE fp32 products of CUDA's matmul, beyond the tests of every design (tests/designs/test_designs.py)."""

from pathlib import Path

import pytest
import torch

import cuda_reference
from cuda_reference.launch import LIBRARY
from cuda_reference.matmul.cuda_cores import DESIGN
from perf.offline import sass
from tests import cases, nvcc
from tests.harness import DEVICES, offset_by_one, padded, prepare, random, run_checked, thorough, transposed
from tritonkernels.target import KNOWN, Target

NAME, ROOT = "cuda_cores", Path(cuda_reference.__file__).parent
CONFIGS = list(DESIGN.configs(None, Target.named("simt")))


def launch(*operands, config=CONFIGS[0], **options):
    call = prepare("matmul", *operands, **options)
    (only,) = DESIGN.launches(call.problem, config, *call.parts[0])
    return only


def kernel(*operands, **options):
    """(A along K, B along K, in vectors) of the kernel that a call launches."""
    return tuple(word == "true" for word in launch(*operands, **options).expression.rstrip(">").split(", ")[-3:])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("a_along_k", (True, False))
@pytest.mark.parametrize("b_along_k", (True, False))
@pytest.mark.parametrize("in_vectors", (True, False))
def test_operands_are_read_without_a_copy(device, a_along_k, b_along_k, in_vectors):
    """Several of the smallest tiles, and slices of which the last is shorter."""
    a, b = random(2, 44, 36, device=device), random(2, 36, 40, device=device)
    a, b = a if a_along_k else transposed(a), transposed(b) if b_along_k else b
    if not in_vectors:
        b = offset_by_one(b.mT).mT if b_along_k else offset_by_one(b)
    assert kernel(a, b) == (a_along_k, b_along_k, in_vectors)
    for config in CONFIGS:
        run_checked(LIBRARY, "matmul", NAME, a, b, config=config)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("a_along_k", (True, False))
@pytest.mark.parametrize("b_along_k", (True, False))
def test_rows_that_end_inside_a_vector(device, a_along_k, b_along_k):
    """Memory between rows may be read but must not be used: here it is NaN."""
    m, n, k = 35, 38, 33
    a = padded(random(2, m, k, device=device)) if a_along_k else padded(random(2, k, m, device=device)).mT
    b = padded(random(2, n, k, device=device)).mT if b_along_k else padded(random(2, k, n, device=device))
    assert kernel(a, b) == (a_along_k, b_along_k, True)
    run_checked(LIBRARY, "matmul", NAME, a, b)


def test_incomplete_vectors_are_read_by_element():
    a, b = torch.empty(2, 8, 8), torch.empty(8, 8)
    flat = torch.empty(200)
    assert kernel(a, b) == (True, False, True)
    assert not kernel(a, flat[1:65].view(8, 8))[2], "an address that is not aligned to 16 bytes"
    assert not kernel(flat.as_strided((2, 8, 8), (66, 8, 1)), b)[2], "aligned rows, but matrices that are not"
    assert not kernel(a, flat.as_strided((8, 8), (4, 1)))[2], "rows that overlap: a vector could end after the last one"
    assert not kernel(flat.as_strided((8, 8), (16, 2)), b)[2], "no contiguous dimension"
    assert kernel(flat.as_strided((1, 8, 8), (3, 8, 1)), b)[2], "the batch stride of one matrix is unused"
    assert kernel(torch.empty(1, 8).expand(8, 8), b)[2], "one row for all"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", cases.EPILOGUES)
def test_epilogues(device, name):
    options, reads_c, has_bias = cases.EPILOGUES[name]
    a, b, c = random(2, 37, 33, device=device), random(2, 33, 21, device=device), random(2, 37, 21, device=device)
    bias = random(42, device=device)[::2] if has_bias else None
    for addend in (transposed(c), c[:1, :, :1], c[0, 0, 0]) if reads_c else (None,):
        for config in CONFIGS if name == "all" else CONFIGS[:1]:
            run_checked(LIBRARY, "matmul", NAME, a, b, c=addend, bias=bias, config=config, **options)


@pytest.mark.parametrize("device", DEVICES)
def test_a_batch_shares_an_operand_and_repeats_its_bits(device):
    a, b = random(5, 20, 40, device=device), random(40, 24, device=device)
    shared, _ = run_checked(LIBRARY, "matmul", NAME, a, b)
    again = cuda_reference.matmul(a, b.expand(5, 40, 24).clone())
    assert torch.equal(shared, again)


def test_it_is_chosen_for_ieee_only():
    """In a batch: a single product by rows is gemm's."""
    for target in (t for t in KNOWN if t.vendor != "amd"):
        for dtype, options in cases.PRECISIONS + cases.MORE_PRECISIONS:
            a = torch.empty(2, 64, 64, dtype=dtype, device="meta")
            problem = prepare("matmul", a, a, **options).problem
            willing = [d for d in cuda_reference.designs("matmul") if d.refuses(problem, target) is None]
            ieee = dtype == torch.float32 and not options
            assert ("cuda_cores" in {d.name for d in willing}) == ieee
            if willing:
                chosen = LIBRARY.choose(problem, target)[0].name
                assert ("cuda_cores" in chosen or "gemm." in chosen) == ieee, (target.name, options)


@pytest.mark.long
@nvcc.needed
@thorough  # tests/designs/test_compile.py has the kernels of the smallest tile
@pytest.mark.parametrize("architecture", ("80", "90a", "100a", "120a"))
def test_no_kernel_spills(architecture):
    kernels = [kernel for config in CONFIGS for kernel in launch(random(4, 8), random(8, 4), config=config).source.expressions]
    cubin = nvcc.compiled(architecture, ["matmul/cuda_cores.cuh"], kernels, "-Werror", "all-warnings").cubin
    code = sass.read(cubin).values()
    assert len(code) == len(kernels) == 24 and not any(kernel.stack_bytes for kernel in code)
    assert all(sass.share(kernel.hot_loop(), ("FFMA",)) > 0.6 for kernel in code), "IEEE fp32, on CUDA cores"
