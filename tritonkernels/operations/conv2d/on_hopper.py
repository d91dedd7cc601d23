"""What warp_specialized refuses in both packages: conv2d's and conv2d_weight's, whose boxes have 128 bytes of channels."""


def refuses_on_hopper(problem, target, along):
    """Why the problem is not for wgmma on boxes of pixels, which lie `along` the reduction or across, or None."""
    if problem.precision == "tf32" and not along:
        return "its operands lie across the reduction, and wgmma reads tf32 along it only"
    if problem.precision not in ("fp16", "bf16", "tf32"):
        return f"its wgmmas are of fp16, bf16 or tf32, not {problem.precision}"
    if along and problem.groups > 1:
        return f"a box has channels of one group only, and there are {problem.groups} groups"
    if target.is_gpu and target.arch != 90:
        return f"it needs wgmma, which only sm_90 has; {target.name} is {target.isa}"
    if not problem.terms * problem.outputs:
        return "TMA describes no empty operand, and there is nothing to add up"
    return None
