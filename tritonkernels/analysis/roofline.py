"""The roofline (Williams, Waterman, Patterson 2009): a kernel is limited by the peak, and by the bandwidth of its bytes."""


def slowest(seconds):
    """The name of the largest of the known times (name -> seconds or None), None where none is known."""
    known = {name: time for name, time in seconds.items() if time is not None}
    return max(known, key=known.get) if known else None


def limits(problem, target):
    """The two lower bounds (seconds) of a kernel for the problem, None where the rate is unknown, and which one is larger."""
    peak = target.peak(problem.precision)
    memory = problem.bytes / target.dram_bandwidth if target.dram_bandwidth else None
    compute = problem.flops / peak if peak else None
    return {"memory_s": memory, "compute_s": compute, "bound_by": slowest({"memory": memory, "compute": compute})}
