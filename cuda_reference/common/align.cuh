// An operand of any strides copied into rows along K whose pitch is a multiple of 16 bytes, for kernels that copy by 16 bytes.
//
// Reads and writes every element once: 8 bytes for a 16-bit element of both operands of a square product, M times fewer than it
// multiplies.
#pragma once
#include "overlap.cuh"
#include "patch.cuh"

namespace operands {

template <class Bits>
__global__ void __launch_bounds__(256) align(const Bits* __restrict__ from, Bits* __restrict__ to, int span, int K,
                                             int pitch, OperandStrides stride) {
    __shared__ PatchTile<Bits> tile;
    wait_for_earlier_kernels();
    const Patch patch(span, K);
    patch.load(tile, from, span, K, stride);
    to += int64_t(patch.batch) * span * pitch;
#pragma unroll
    for (int i = threadIdx.x; i < PATCH * PATCH; i += 256) {
        const int row = patch.first + i / PATCH, k = patch.first_k + i % PATCH;
        if (row < span && k < K) to[int64_t(row) * pitch + k] = tile[i / PATCH][i % PATCH];
    }
}

}  // namespace operands
