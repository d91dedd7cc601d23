"""Operands as the tensor cores of a GPU want them, and what no Triton design takes."""

from ..language.packed import packed

SPLIT = ("tf32x3", "fp16x3", "bf16x6", "bf16x9")


def refuses_operands(problem, target):
    """What tl.dot cannot multiply on the target, whatever the design."""
    if problem.precision in SPLIT:
        return f"it does not split fp32 operands: {problem.precision} is not its precision"
    if not target.is_gpu:
        return None
    if problem.precision == "fp8" and target.arch < 89:
        return f"fp8 begins with sm_89, and {target.name} is sm_{target.arch}"
    if problem.precision in ("bf16", "tf32", "fp64") and target.arch < 80:
        return f"{problem.precision} on tensor cores begins with sm_80, and {target.name} is sm_{target.arch}"
    return None


def packed_along_k(problem, t):
    """(launch, copy): an operand (BATCH, rows, K) with K contiguous, padded with zeros and aligned; tf32 rounded on the way."""
    launch, copy = packed(t.mT, to_tf32=problem.precision == "tf32")
    return launch, copy.mT


def packed_operands(problem, config, a, b):
    """(launches, a, b, {"ARE_TF32": ...}): the operands, those that the config says packed with K contiguous first."""
    packs = config.kwargs["PACK_A"], config.kwargs["PACK_B"]
    operands, before = [a, b.mT], []
    for i, t in enumerate(operands):
        if packs[i]:
            launch, copy = packed_along_k(problem, t[:1] if t.stride(0) == 0 else t)
            operands[i] = copy.expand(t.shape[0], -1, -1)
            before.append(launch)
    return before, operands[0], operands[1].mT, {"ARE_TF32": problem.precision == "tf32" and all(packs)}
