"""Calls of operands that four processes share out, with their gradients, next to the same calls on one: a process of its own.

    python -m tests.torch_ops.sharded CASE ...

writes as JSON what each of these CASES and WRONG did: the result's placement, how often data moved, and what differed. Operands
are small whole numbers, so that all sums are exact in any order.
"""

import dataclasses
import datetime
import functools
import importlib
import json
import sys
import tempfile
from typing import Any, NamedTuple

import torch

import cuda_reference
import tritonkernels

RANKS = 4


class Case(NamedTuple):
    """given: the operands' placements, by dimension of the mesh if it has two: a dimension, None for copies, or "sum".

    result: that of the result; None where there is no way for operands as they lie, so that some are moved.
    """

    call: Any  # (package, *tensors)
    shapes: tuple
    given: tuple
    result: Any
    mesh: tuple = (RANKS,)
    dtypes: tuple = ()
    package: Any = cuda_reference
    own_groups: bool = False  # ranks share out groups, which torch 2.11 cannot: there operands are moved


def _addmm(package, a, b, c=None):
    return package.gemm(a, b, c, alpha=2.0)


def _linear(package, a, b, bias, **options):
    return package.matmul(a, b, bias=bias, **options)


def _baddbmm(package, a, b, c):
    return package.matmul(a, b, c=c, beta=2.0)


def _gemv(package, a, x, y=None, scale=None):
    return package.gemv(a, x, y, scale=scale)


def _conv2d(package, x, weight, bias=None, **options):
    return package.conv2d(x, weight, bias, padding=1, **options)


def _with_residual(package, x, weight, residual):
    return _conv2d(package, x, weight, residual=residual)


def _input(package, weight, grad, bias, groups=1):
    return package.conv2d_input((4, 8, 6, 6), weight, grad, padding=1, groups=groups, bias=bias)


def _weight(package, x, grad, groups=1):
    return package.conv2d_weight(x, (4, 8 // groups, 3, 3), grad, padding=1, groups=groups)


grouped, strided = functools.partial(_conv2d, groups=4), functools.partial(_conv2d, stride=(2, 1))
GEMM, BATCH = ((8, 12), (12, 16), (16,)), ((4, 8, 12), (12, 16), (4, 1, 16))
CONV, GROUPS = ((4, 8, 6, 6), (4, 8, 3, 3), (4,)), ((4, 8, 6, 6), (4, 2, 3, 3), (4,))
RESIDUAL = (*CONV[:2], (4, 4, 6, 6))
HALF, INT8 = (torch.float16,) * 2, (torch.int8,) * 2

CASES = {
    "gemm, rows": Case(_addmm, GEMM, (0, None, None), 0),
    "gemm, columns": Case(_addmm, GEMM, (None, 1, 0), 1),
    "gemm, K": Case(_addmm, GEMM[:2], (1, 0), "sum"),
    "gemm, K with an addend": Case(_addmm, GEMM, (1, 0, None), "sum"),
    "gemm, a column to add": Case(_addmm, (*GEMM[:2], (8, 1)), (0, None, 0), 0),
    "gemm, columns and a column to add": Case(_addmm, (*GEMM[:2], (8, 1)), (None, 1, None), 1),
    "gemm, 5 rows": Case(_addmm, ((5, 12), (12, 16), (16,)), (0, None, None), 0),
    "gemm, 6 rows, K": Case(_addmm, ((6, 5), (5, 3)), (1, 0), "sum"),
    "gemm, fewer rows than ranks": Case(_addmm, ((3, 12), (12, 16), (16,)), (0, None, None), None),
    "gemm, rows that do not fit": Case(_addmm, GEMM[:2], (1, None), "sum"),
    "gemm, rows and columns": Case(_addmm, GEMM, ((0, None), (None, 1), (None, 0)), (0, 1), mesh=(2, 2)),
    "gemm, rows and K": Case(_addmm, GEMM[:2], ((0, 1), (None, 0)), (0, "sum"), mesh=(2, 2)),
    "gemm of tritonkernels, K": Case(_addmm, GEMM, (1, 0, None), "sum", package=tritonkernels),
    "matmul, batch": Case(_baddbmm, BATCH, (0, None, 0), 0),
    "matmul, both have the batch": Case(_baddbmm, (*BATCH[:1], (4, 12, 16), (4, 8, 16)), (0, 0, 0), 0),
    "matmul, a batch that broadcasts": Case(_baddbmm, ((1, 8, 12), (4, 12, 16), (16,)), (None, 0, None), 0),
    "matmul, rows of a batch": Case(_baddbmm, BATCH, (1, None, None), 1),
    "matmul, columns of a batch": Case(_baddbmm, BATCH, (None, 1, 2), 2),
    "matmul, batch and K": Case(_baddbmm, BATCH, ((0, 2), (None, 0), (0, None)), (0, "sum"), mesh=(2, 2)),
    "matmul, a row": Case(_baddbmm, ((12,), (12, 16), (16,)), (None, 1, 0), 0),
    "matmul, a column": Case(_baddbmm, ((8, 12), (12,), (8,)), (1, 0, None), "sum"),
    "matmul, bias": Case(_linear, GEMM, (None, 1, 0), 1),
    "matmul, K with a bias": Case(_linear, GEMM, (1, 0, None), "sum"),
    "matmul, relu": Case(functools.partial(_linear, activation="relu"), GEMM, (None, 1, 0), 1),
    "matmul, relu of a sum": Case(functools.partial(_linear, activation="relu"), GEMM, (1, 0, None), None),
    "matmul, fp16": Case(_linear, (*GEMM[:2], None), (1, 0, None), "sum", dtypes=HALF),
    "matmul, fp16 to fp32": Case(
        functools.partial(_linear, out_dtype=torch.float32), (*GEMM[:2], None), (1, 0, None), "sum", dtypes=HALF
    ),
    "matmul, int8": Case(_linear, (*GEMM[:2], None), (1, 0, None), "sum", dtypes=INT8),
    "matmul, relu of a sum of int8": Case(
        functools.partial(_linear, activation="relu"), (*GEMM[:2], None), (1, 0, None), None, dtypes=INT8
    ),
    "matmul, int8 with an addend": Case(_baddbmm, (*GEMM[:2], (8, 16)), (1, 0, None), None, dtypes=(*INT8, torch.int32)),
    "gemv, rows": Case(_gemv, ((8, 12), (12,), (8,)), (0, None, 0), 0),
    "gemv, N": Case(_gemv, ((8, 12), (12,), (8,)), (1, 0, None), "sum"),
    "gemv, batch": Case(_gemv, ((4, 8, 12), (4, 12)), (0, 0), 0),
    "gemv, one matrix": Case(_gemv, ((8, 12), (4, 12), (8,)), (None, 0, None), 0),
    "gemv, int8": Case(_gemv, ((8, 12), (12,), (8,), (8,)), (0, None, 0, 0), 0, dtypes=(torch.int8,)),
    "gemv, N of int8": Case(_gemv, ((8, 12), (12,), (8,), (8,)), (1, 0, None, None), "sum", dtypes=(torch.int8,)),
    "conv2d, batch": Case(_conv2d, CONV, (0, None, None), 0),
    "conv2d, batch with strides": Case(strided, CONV, (0, None, None), 0),
    "conv2d, 5 images": Case(_conv2d, ((5, *CONV[0][1:]), *CONV[1:]), (0, None, None), 0),
    "conv2d, output channels": Case(_conv2d, CONV, (None, 0, 0), 1),
    "conv2d, output channels of an image": Case(_conv2d, (CONV[0][1:], *CONV[1:]), (None, 0, 0), 0),
    "conv2d, input channels": Case(_conv2d, CONV[:2], (1, 1), "sum"),
    "conv2d, input channels with a bias": Case(_conv2d, CONV, (1, 1, None), "sum"),
    "conv2d, batch and output channels": Case(_conv2d, CONV, ((0, None), (None, 0), (None, 0)), (0, 1), mesh=(2, 2)),
    "conv2d, relu of output channels": Case(functools.partial(_conv2d, activation="relu"), CONV, (None, 0, 0), 1),
    "conv2d, relu of a sum": Case(functools.partial(_conv2d, activation="relu"), CONV, (1, 1, None), None),
    "conv2d, residual of a batch": Case(_with_residual, RESIDUAL, (0, None, 0), 0),
    "conv2d, residual of a sum": Case(_with_residual, RESIDUAL, (1, 1, None), "sum"),
    "conv2d, groups": Case(grouped, GROUPS, (1, 0, 0), 1, own_groups=True),
    "conv2d, batch in groups": Case(grouped, GROUPS, (0, None, None), 0),
    "conv2d, batch and groups": Case(grouped, GROUPS, ((0, 1), (None, 0), (None, 0)), (0, 1), mesh=(2, 2), own_groups=True),
    "conv2d, fewer groups than ranks": Case(functools.partial(_conv2d, groups=2), ((4, 8, 6, 6), (4, 4, 3, 3)), (1, 0), None),
    "conv2d, groups that the second of two dimensions does not divide": Case(
        functools.partial(_conv2d, groups=2), ((4, 8, 6, 6), (4, 4, 3, 3)), ((1, 1), (0, 0)), None, mesh=(2, 2)
    ),
    "conv2d, pixels": Case(_conv2d, CONV, (2, None, None), None),
    "conv2d_input, batch": Case(_input, (CONV[1], (4, 4, 6, 6), (8,)), (None, 0, None), 0),
    "conv2d_input, input channels": Case(_input, (CONV[1], (4, 4, 6, 6), (8,)), (1, None, 0), 1),
    "conv2d_input, output channels": Case(_input, (CONV[1], (4, 4, 6, 6), (8,)), (0, 1, None), "sum"),
    "conv2d_input, groups": Case(
        functools.partial(_input, groups=4), (GROUPS[1], (4, 4, 6, 6), (8,)), (0, 1, 0), 1, own_groups=True
    ),
    "conv2d_weight, batch": Case(_weight, (CONV[0], (4, 4, 6, 6)), (0, 0), "sum"),
    "conv2d_weight, input channels": Case(_weight, (CONV[0], (4, 4, 6, 6)), (1, None), 1),
    "conv2d_weight, output channels": Case(_weight, (CONV[0], (4, 4, 6, 6)), (None, 1), 0),
    "conv2d_weight, groups": Case(functools.partial(_weight, groups=4), (CONV[0], (4, 4, 6, 6)), (1, 1), 0, own_groups=True),
    "conv2d_bias, batch": Case(lambda package, grad: package.conv2d_bias(grad), ((4, 4, 6, 6),), (0,), "sum"),
    "conv2d_bias, channels": Case(lambda package, grad: package.conv2d_bias(grad), ((4, 4, 6, 6),), (1,), 0),
}
WRONG = Case(_addmm, ((8, 8), (8, 16), (16,)), (1, 0, None), "sum")  # of a rule by which every rank adds the whole C


def main():
    import torch.distributed.tensor.debug  # once, before there are four

    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.start_processes(_rank, (folder,), nprocs=RANKS, start_method="fork")


def _rank(rank, folder):
    from torch import distributed

    torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=60)  # a rank that fails alone leaves the others waiting
    distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=RANKS, timeout=timeout)
    found = {name: _outcome(case) for name, case in CASES.items() if name in sys.argv[1:]}
    gemm = importlib.import_module("cuda_reference.gemm").OPERATOR
    gemm.rules = dataclasses.replace(gemm.rules, addends={})
    found["wrong"] = _outcome(WRONG)
    every = [None] * RANKS
    distributed.all_gather_object(every, found)
    if rank == 0:
        json.dump({name: [of_rank[name] for of_rank in every] for name in found}, sys.stdout)
    distributed.destroy_process_group()


def _outcome(case):
    """(the result's placements, collectives before the result, what differed) on this rank."""
    from torch.distributed.tensor import distribute_tensor, init_device_mesh
    from torch.distributed.tensor.debug import CommDebugMode

    mesh, tensors, given = init_device_mesh("cpu", case.mesh), _operands(case), map(placements, case.given)
    whole = [leaf(t) for t in tensors]
    shared = [t if t is None else leaf(distribute_tensor(t, mesh, of_tensor)) for t, of_tensor in zip(tensors, given)]
    try:
        wanted = case.call(case.package, *whole)
        with CommDebugMode() as moved:
            got = case.call(case.package, *shared)
        found = str(got.placements), moved.get_total_counts()
        torch.testing.assert_close(got.full_tensor(), wanted, rtol=0, atol=0)
        if wanted.dtype.is_floating_point:
            wanted, got = gradients(wanted, whole), gradients(got, shared)
            torch.testing.assert_close([t.full_tensor() for t in got], wanted, rtol=0, atol=0)
    except Exception as error:
        return None, None, repr(error)
    return *found, None


def _operands(case):
    torch.manual_seed(0)  # the same on every rank
    dtypes = case.dtypes + (torch.float32,) * len(case.shapes)
    return [s if s is None else torch.randint(-2, 3, s).to(dtype) for s, dtype in zip(case.shapes, dtypes)]


def leaf(tensor):
    return tensor.requires_grad_() if tensor is not None and tensor.dtype.is_floating_point else tensor


def gradients(result, inputs):
    return torch.autograd.grad(result.float().pow(2).sum(), [t for t in inputs if t is not None and t.requires_grad])


def placements(of_mesh):
    """torch's, of a Case's."""
    from torch.distributed.tensor import Partial, Replicate, Shard

    kinds = {None: Replicate(), "sum": Partial()}
    return tuple(kinds[p] if p in kinds else Shard(p) for p in (of_mesh if isinstance(of_mesh, tuple) else (of_mesh,)))


if __name__ == "__main__":
    main()
