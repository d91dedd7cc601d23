"""Broken kernels: conv2d_weight's warp_specialized, of both packages, and im2col copies in the emulation."""

from tests.mutants.mutant import of

MUTANTS = [
    *of(
        "cuda_reference/conv2d_weight/warp_specialized.cuh",
        "test_weight_warp_specialized_cuda and (sizes or pieces)",
        (
            "a stage overwritten before it is read",
            "mbarrier_wait(memory.empty + ring.stage, ring.parity ^ 1);",
            "if (ring.parity == 0 && slice < 0) mbarrier_wait(memory.empty + ring.stage, 0);",
        ),
        ("a stage given back by one consumer", "mbarrier_init(empty + stage, CONSUMERS);", "mbarrier_init(empty + stage, 1);"),
        ("taps of the other axis", "(unsigned short)(tap % g.S * g.dilation_w)", "(unsigned short)(tap % g.S * g.dilation_h)"),
        ("padding forgotten", "at.p * g.step_h - g.padding_h", "at.p * g.step_h"),
        ("the end of a row passed", "if (at.q >= g.Q) at.q -= g.Q, ++at.p;", "if (at.q > g.Q) at.q -= g.Q, ++at.p;"),
        ("both consumers the same columns", "across = consumer % Block::ACROSS * Block::OWN_UNITS", "across = 0 * consumer"),
        ("one place for both consumers' sums", "part.most + i) * CONSUMERS + consumer;", "part.most + i) * CONSUMERS;"),
        ("a piece taken for a tile", "if (piece.count < args.cut.slices) {", "if (piece.count < 0) {"),
    ),
    *of(
        "cuda_reference/conv2d_weight/parts/pieces.cuh",
        "test_weight_warp_specialized_cuda and pieces",
        ("tails that begin their tile", "piece.first += cut.heads * cut.head;", "piece.first += 0;"),
        ("heads one after the other", "head / left * cut.head;", "head % left * cut.head;"),
        ("a tail's part counted as a head's", "sharer - sharers.first + cut.heads", "sharer - sharers.first"),
    ),
    *of(
        "cuda_reference/simt/tma.cpp",
        "test_weight_warp_specialized_cuda and sizes",
        (
            "a row's end at the image's",
            "if (pixel.column < t.sizes[2] + t.last[1]) continue;",
            "if (pixel.column < t.sizes[2]) continue;",
        ),
        ("taps left where they are", "pixel.row + tap.down, pixel.column + tap.right", "pixel.row, pixel.column"),
    ),
    *of(
        "tritonkernels/conv2d_weight/parts/specialists.py",
        "test_weight_warp_specialized and (sizes or pieces)",
        ("a place filled before it is empty", "mbarrier.wait(ring.empty.index(at), phase ^ 1)", "pass"),
        (
            "a slice announced as it is requested",
            "announce(ring.full, at, AHEAD, AHEAD, slices, STAGES)",
            "announce(ring.full, at, 0, AHEAD, slices, STAGES)",
        ),
        ("the last slices never announced", "    announce_last(ring.full, at, AHEAD, slices, STAGES)\n", ""),
        ("copies not waited for", "at, AHEAD, AHEAD, slices", "at, AHEAD, AHEAD + 1, slices"),
        ("a slice given back too early", "ring.empty.index(before), pred=i > 0)", "ring.empty.index(at), pred=True)"),
        ("the end of an image passed", "now.h >= end_h", "now.h > end_h"),
        ("right edge of the image unmasked", " & is_below(at.w + unit.right, g.W)", ""),
        ("a tap's rows in columns", "wide(right, tile.WIDE) * input.w", "wide(right, tile.WIDE) * input.h"),
    ),
    *of(
        "tritonkernels/conv2d_weight/parts/cuda_cores.py",
        "test_weight_cuda_cores_triton and (sizes or pieces)",
        ("copies not waited for", "async_copy.wait_group(STAGES - 2)", "async_copy.wait_group(STAGES - 1)"),
        (
            "a slice over the one that is multiplied",
            "grads.index(free), inputs.index(free)",
            "grads.index(stage), inputs.index(free)",
        ),
        ("right edge of the image unmasked", "is_below(at.w[:, None] + columns.right[None, :], g.W)", "True"),
        ("taps beyond the last one", "(c < g.C) & (tap < g.R * g.S)", "c < g.C"),
        ("a piece taken for a tile", "if count < cut.slices:", "if count < 0:"),
    ),
    *of(
        "tritonkernels/conv2d_weight/parts/positions.py",
        "test_weight_cuda_cores_triton and sizes",
        ("an image's end at the next image's", "-g.P * g.step_h, 0, input.n - g.P * row", "-g.P * g.step_h, 0, input.n"),
        ("channels of the chunk behind the last", "// CHUNK * CHUNK + columns % CHUNK)", "// CHUNK * CHUNK + columns)"),
    ),
    *of(
        "tritonkernels/conv2d_weight/parts/added_parts.py",
        "test_weight_cuda_cores_triton and pieces",
        ("columns of another tap", "unit % chunks * BOX + column % BOX", "unit % chunks * BOX"),
    ),
    *of(
        "tritonkernels/language/shared_walk.py",
        "test_weight_warp_specialized and pieces",
        ("a tail's second part in the place of its first", "tl.cast(first > 0, tl.int32)", "0"),
        ("tails that begin their tile", "cut.heads * cut.head + first", "first"),
        ("parts of heads only", "last - first + 1, 0)", "0, 0)"),
    ),
]
