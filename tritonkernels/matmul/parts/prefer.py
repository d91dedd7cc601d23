"""The Triton design of matmul for a call that names none."""

ENOUGH_WORK = 2**28  # multiply-adds; with fewer, making TMA descriptors costs more time than TMA saves
ENOUGH_REUSE = 256  # reads of each element; from there on packing it costs less than repeated unaligned reads
ALONG_K = ("fp8", "int8", "tf32")  # Hopper reads these only if contiguous along K
TENSOR_CORES_READ = ("fp16", "bf16", "fp8", "int8", "tf32")  # read directly from memory; other types are converted in registers


def prefer(problem, target):
    """gemv, where the problem is one of its own; gemm, where it was faster on an H200; then the design of `_product`.

    In the interpreter the cost is per operation, and `pipelined` has the fewest.
    """
    if not target.is_gpu:
        return "pipelined"
    own = _product(problem, target)
    large, along_k = min(problem.m, problem.n, problem.k) >= 256, problem.b_layout == "col"
    return ("gemv", *(("gemm",) if own != "split_k" and (large or along_k) else ()), own)


def _product(problem, target):
    """By records of an H200 (perf/results/h200): split-K for few tiles of 64 x 64 with a long K; on sm_90 and later,
    `persistent` from 650^3 on, if TMA can read the operands or they are reused enough to be packed for it; else a program per
    tile.
    """
    tiles = problem.batch * -(-problem.m // 64) * -(-problem.n // 64)
    shortest = min(problem.m, problem.n)
    if problem.k >= 1024 and tiles * (1 if shortest <= 64 else 2) <= target.sms:
        return "split_k"
    read_by_tma = target.arch >= 90 and problem.k and problem.precision in TENSOR_CORES_READ
    if read_by_tma and shortest >= 128 and problem.batch * problem.m * problem.n * problem.k >= ENOUGH_WORK:
        along_k = (problem.a_layout, problem.b_layout) == ("row", "col")
        as_it_lies = problem.aligned and problem.precision != "tf32" and (along_k or problem.precision not in ALONG_K)
        if as_it_lies or shortest >= ENOUGH_REUSE:
            return "persistent"
    return "pipelined"
