"""Operands in the layouts that a GPU's tensor cores need, and operands that every Triton design refuses."""

from ...language.on_target import lacks_products
from ...language.packed import packed
from ...operations.matmul.schemes import SCHEMES

TENSOR_CORES_READ = ("fp16", "bf16", "fp8", "int8", "tf32")  # directly from memory; other types are converted in registers
ALONG_K = ("fp8", "int8", "tf32")  # Hopper reads these only if contiguous along K


def refuses_operands(problem, target):
    """Why tl.dot cannot multiply the operands on the target, in any design, or None."""
    if problem.precision in SCHEMES:
        return f"it does not split fp32 operands: {problem.precision} is not its precision"
    return lacks_products(problem.precision, target)


def packed_along_k(problem, t):
    """(launches, copy): an operand (BATCH, rows, K) with K contiguous, padded with zeros, aligned; tf32 rounded on the way."""
    launches, copy = packed(t.mT, to_tf32=problem.precision == "tf32")
    return launches, copy.mT


def packed_across_k(problem, t):
    """The same with the rows' dimension contiguous, as CUDA cores read it."""
    launches, copy = packed(t)
    return launches, copy[:, : t.shape[1]]


def packed_operands(problem, config, a, b):
    """(launches, a, b, are they rounded to tf32): the operands, those that the config says packed as `packings` has it."""
    packs = config.kwargs["PACK_A"], config.kwargs["PACK_B"]
    pack = packed_across_k if problem.precision == "ieee" else packed_along_k
    operands, before = [a, b.mT], []
    for i, t in enumerate(operands):
        if packs[i]:
            copies, copy = pack(problem, t[:1] if t.stride(0) == 0 else t)
            operands[i] = copy.expand(t.shape[0], -1, -1)
            before += copies
    return before, operands[0], operands[1].mT, problem.precision == "tf32" and all(packs)
