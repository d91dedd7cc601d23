"""What tl.dot can multiply on a target, and what the compiler makes of it there."""

import triton

from ..backend import version


def lacks_products(precision, target):
    """Why the target cannot multiply in a precision, as a sentence, or None."""
    if precision == "fp8":  # AMD GPUs have other fp8 types
        return target.lacks("fp8", 89)
    if target.vendor == "amd":
        no_tf32 = precision == "tf32" and target.gfx != "gfx942"
        return f"of AMD's only gfx942 multiplies tf32, {target.name} is {target.isa}" if no_tf32 else None
    return target.lacks(f"{precision} on tensor cores", 80) if precision in ("bf16", "tf32", "fp64") else None


def two_warpgroups_wait(problem, target):
    """Whether ptxas makes every WGMMA of two warpgroups wait for the one before: Triton 3.6 gives them to it so where no loop
    over tiles is around the loop over K."""
    return version(triton) < (3, 7) and target.arch == 90 and problem.precision in ("fp16", "bf16", "tf32")
