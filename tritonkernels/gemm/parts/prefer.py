"""The Triton design of gemm for a call that names none."""


def prefer(problem, target):
    """The design for a problem, by its number of tiles of 128 x 128: with few tiles and a long K split-K, with few tiles
    otherwise small ones, else the design with the most multiply-adds per shared read. It was fitted to an H200
    (perf/results/h200), where it names the fastest Triton design for each case of the suite `ladder` but 256 cubed, where it
    loses 4 %. In the interpreter the cost is per operation, and `tiled` has the fewest.
    """
    if not target.is_gpu:
        return "tiled"
    few = 4 * -(-problem.m // 128) * -(-problem.n // 128) <= target.sms
    if few and problem.k >= 1024:
        return "split_k"
    if few:
        return "double_buffered"
    return "async_copy" if target.arch >= 80 else "rasterized"
