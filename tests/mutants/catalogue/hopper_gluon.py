"""Broken lessons of Hopper in Gluon."""

from tests.mutants.mutant import of

TESTS = "hopper_ladder_gluon"
FULL = ("a slice multiplied before it has arrived", "mbarrier.wait(full.index(stage), i // tile.STAGES & 1)", "pass")
ROUNDS = (
    "every round the first",
    "mbarrier.wait(full.index(stage), i // tile.STAGES & 1)",
    "mbarrier.wait(full.index(stage), 0)",
)
EMPTY = ("a place filled before it is empty", "mbarrier.wait(empty.index(stage), i // tile.STAGES & 1 ^ 1)", "pass")
LAST = ("sums written before the last product has ended", "acc = warpgroup_mma_wait(0, deps=(acc,))", "pass")
EARLY = ("a place given back while it is read", "warpgroup_mma_wait(1, ", "warpgroup_mma_wait(2, ")
GIVEN_BACK = "mbarrier.arrive(empty.index((i + tile.STAGES - 1) % tile.STAGES))"

MUTANTS = [
    *of(
        "tritonkernels/matmul/wgmma.py",
        TESTS,
        ("rows after A", "(rows < product.M) & (a_ks", "(rows >= 0) & (a_ks"),
        ("A's K tail", "a_ks < product.K - k)", "a_ks >= 0)"),
        ("B's K tail", "(b_ks < product.K - k)", "(b_ks >= 0)"),
        ("columns after B", "& (cols < product.N)", "& (cols >= 0)"),
        ("a slice stored while others multiply", "barrier()  # all warps have", "pass  # all warps have"),
        ("stores that wgmma does not see", "fence_async_shared()\n", "pass\n"),
        ("a slice multiplied before all have stored", "barrier()  # the slice", "pass  # the slice"),
    ),
    *of(
        "tritonkernels/matmul/tma.py",
        TESTS,
        FULL,
        ROUNDS,
        LAST,
        EARLY,
        ("a place filled while other warps read it", "barrier()  # and for", "pass  # and for"),
        ("a slice asked for into a place in use", "_ask(i + tile.STAGES - 1", "_ask(i + tile.STAGES"),
        ("slices of A after K", "tile.A_ALONG_K, pred=k < K", "tile.A_ALONG_K, pred=K > 0"),
        ("slices of B after K", "tile.B_ALONG_K, pred=k < K", "tile.B_ALONG_K, pred=K > 0"),
    ),
    *of(
        "tritonkernels/matmul/specialized.py",
        TESTS,
        FULL,
        ROUNDS,
        EMPTY,
        LAST,
        EARLY,
        ("a place given back before the first product", "pred=i > 0", "pred=i >= 0"),
        ("a place given back by one of two", "barriers_for(tile.STAGES, 2)", "barriers_for(tile.STAGES, 1)"),
    ),
    *of(
        "tritonkernels/matmul/tile_loop.py",
        TESTS,
        FULL,
        ROUNDS,
        EMPTY,
        LAST,
        EARLY,
        ("a place given back before the first product", "pred=k > 0", "pred=k >= 0"),
        ("the last place of a tile kept", GIVEN_BACK, "pass"),
    ),
    *of(
        "tritonkernels/matmul/in_turn.py",
        TESTS,
        FULL,
        ROUNDS,
        EMPTY,
        ("sums written before the last product has ended", "acc = warpgroup_mma_wait(0, deps=acc)", "pass"),
        ("a place given back while it is read", "warpgroup_mma_wait(3, ", "warpgroup_mma_wait(4, "),
        ("a place given back before the first product", "pred=k > 0", "pred=k >= 0"),
        ("the last place of a tile kept", GIVEN_BACK, "pass"),
        ("no turns", "mbarrier.wait(turn.index(0), WHO ^ 1)", "pass"),
        ("the other's turn", "mbarrier.wait(turn.index(0), WHO ^ 1)", "mbarrier.wait(turn.index(0), WHO)"),
        ("a turn that is not passed on", "mbarrier.arrive(turn.index(0))", "pass"),
    ),
    *of(
        "tritonkernels/language/hopper.py",
        TESTS,
        ("rows after the result", "(rows < product.M) & ", "(rows >= 0) & "),
        ("columns after the result", " & (cols < product.N)", " & (cols >= 0)"),
        ("barriers that TMA does not see", "fence_async_shared()\n", "pass\n"),
        ("barriers that other warps do not see", "    barrier()\n    return", "    return"),
    ),
]
