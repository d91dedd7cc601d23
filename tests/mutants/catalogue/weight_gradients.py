"""Broken kernels: conv2d_weight's warp_specialized and depthwise, of both packages, and im2col copies in the emulation."""

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
            "a slice published as it is requested",
            "_publish(ring, before, slices > 0)\n            slices += 1",
            "_publish(ring, at, True)\n            slices += 1",
        ),
        (
            "the last slice never published",
            "async_copy.wait_group(0)\n    _publish(ring, before, slices > 0)",
            "async_copy.wait_group(0)",
        ),
        ("copies not waited for", "async_copy.wait_group(1)", "async_copy.wait_group(2)"),
        ("a slice given back too early", "ring.empty.index(before), pred=i > 0)", "ring.empty.index(at), pred=True)"),
        ("the end of an image passed", "now.h >= end_h", "now.h > end_h"),
        ("right edge of the image unmasked", " & _is_below(at.w + unit.right, g.W)", ""),
        ("a tap's rows in columns", "_wide(right, tile.WIDE) * input.w", "_wide(right, tile.WIDE) * input.h"),
    ),
    *of(
        "tritonkernels/language/shared_walk.py",
        "test_weight_warp_specialized and pieces",
        ("a tail's second part in the place of its first", "tl.cast(first > 0, tl.int32)", "0"),
        ("tails that begin their tile", "cut.heads * cut.head + first", "first"),
        ("parts of heads only", "last - first + 1, 0)", "0, 0)"),
    ),
    *of(
        "cuda_reference/conv2d_weight/depthwise.cuh",
        "test_weight_depthwise and cuda and (sizes or factor or bits)",
        ("lanes added before they have stored", "__syncthreads();  // all warps have stored theirs", ""),
        ("positions outside of the plane multiplied", "if (!WHOLE && (p + i >= g.P || q + j >= g.Q)) continue;", ""),
        ("rows above the image read", "unsigned(h + row) < unsigned(g.H) ? of_inputs : 0", "h + row < g.H ? of_inputs : 0"),
        ("rows below the image inside", "h + ROWS <= g.H", "h + ROWS <= g.H + 1"),
        ("quads from their first element", "x[FIRST + j * STEP_W + s][c]", "x[j * STEP_W + s][c]"),
        ("a split walked twice", "int(blockIdx.y) * patches_per_split + int(threadIdx.x)", "int(threadIdx.x)"),
        ("a filter's tiles all the first", "- g.padding_w + first_s", "- g.padding_w"),
        ("one filter a channel taken for granted", "k / g.k_per_group() * stride", "k * stride"),
    ),
    *of(
        "tritonkernels/conv2d_weight/depthwise.py",
        "test_weight_depthwise and tritonkernels and (sizes or factor)",
        ("columns outside of the image read", "at.to(tl.uint32) < tl.cast(size, tl.uint32)", "at < size"),
        ("rows outside of the plane multiplied", "product = tl.where(exist, product, 0.0)", "product = product"),
        ("the next split's patches, too", "(index < end) & (k < g.K)", "(index < g.N * high * wide) & (k < g.K)"),
        ("a filter's tiles all the first", "h = p * STEP_H - g.padding_h + first_r", "h = p * STEP_H - g.padding_h"),
        ("taps of steps in between", "and (row - r) % STEP_H == 0 and", "and"),
    ),
]
