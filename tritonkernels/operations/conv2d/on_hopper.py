"""What warp_specialized refuses in both packages: conv2d's and conv2d_weight's, whose boxes have 64 channels of 16 bits."""


def refuses_on_hopper(problem, target):
    """Why the problem is not for wgmma on boxes of pixels, or None."""
    if problem.precision not in ("fp16", "bf16"):
        return f"its boxes have 64 channels of 16 bits, fp16 or bf16, not {problem.precision}"
    if problem.groups > 1:
        return f"its boxes have 64 channels of one group, and there are {problem.groups} groups"
    if target.is_gpu and target.arch != 90:
        return f"it needs wgmma, which only sm_90 has; {target.name} is {target.isa}"
    if not problem.terms * problem.outputs:
        return "TMA describes no empty operand, and there is nothing to add up"
    return None
