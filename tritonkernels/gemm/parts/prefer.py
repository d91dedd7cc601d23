"""Which Triton design of gemm a call gets that names none."""


def prefer(problem, target):
    """The design for a problem, by tiles of 128 x 128: few tiles and much K want split-K, few tiles alone small ones, the rest
    the most multiply-adds per shared read. On an H200 this names the fastest Triton design for each case of the suite `ladder`
    but 256 cubed, where it gives away 4 % (perf/results/h200, which it was fitted to). In the interpreter the cost is per
    operation, and `tiled` has the fewest.
    """
    if not target.is_gpu:
        return "tiled"
    few = 4 * -(-problem.m // 128) * -(-problem.n // 128) <= target.sms
    if few and problem.k >= 1024:
        return "split_k"
    if few:
        return "double_buffered"
    return "async_copy" if target.arch >= 80 else "rasterized"
