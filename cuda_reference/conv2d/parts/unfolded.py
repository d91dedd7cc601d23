"""The launch that copies patches, and filters, into matrices."""

from tritonkernels.operations.conv2d.unfolded import THREADS

from ...launch import CudaLaunch, Source

WORDS = {2: "uint16_t", 4: "uint32_t", 8: "uint2", 16: "uint4"}  # by their bytes
_NO_COPY = None, None, (0,) * 15


def unfold(*copies):
    arguments, blocks, sizes = [], 0, []
    for copy in copies:
        words = copy.words(max(WORDS))
        tile = words.tile()
        count = words.blocks(tile)
        arguments += [copy.tensor, copy.matrix, (count, tile[1], *words[1:])]
        blocks += count
        sizes.append(words.size)
    kernel = f"conv2d::unfold<{WORDS[sizes[0]]}, {WORDS[sizes[-1]]}>"
    source = Source("conv2d/parts/unfolded.cuh", (kernel,))
    return CudaLaunch(source, kernel, (blocks,), (THREADS, 1, 1), tuple((*arguments, *_NO_COPY)[:6]), part=(kernel,))
