// An operand of any strides copied into rows along K whose pitch is a multiple of 16 bytes, for kernels that copy by 16 bytes.
//
// Reads and writes every element once: 8 bytes for a 16-bit element of both operands of a square product, M times fewer than it
// multiplies.
#pragma once
#include "overlap.cuh"
#include "patch.cuh"

namespace operands {

template <class Bits>
__global__ void __launch_bounds__(PATCH_THREADS) align(const Bits* __restrict__ from, Bits* __restrict__ to, int span,
                                                       int K, int pitch, OperandStrides stride) {
    __shared__ PatchTile<Bits> tile;
    wait_for_earlier_kernels();
    const Patch patch(span, K);
    patch.load(tile, from, span, K, stride);
    const int line = threadIdx.x / PATCH, k = threadIdx.x % PATCH, rows = patch.first_k + k < K ? span - patch.first - line : 0;
    to += (int64_t(patch.batch) * span + patch.first + line) * pitch + patch.first_k + k;
    Bits numbers[PATCH / LINES];
#pragma unroll
    for (int i = 0; i < PATCH / LINES; ++i) numbers[i] = tile[line + i * LINES][k];
    __syncwarp();  // or else each is read where it is written, one after the other
#pragma unroll
    for (int i = 0; i < PATCH / LINES; ++i)
        if (i * LINES < rows) to[int64_t(i) * LINES * pitch] = numbers[i];
}

}  // namespace operands
