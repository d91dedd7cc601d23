// An operand of any strides copied into rows along K whose pitch is a multiple of 16 bytes, for kernels that copy by 16 bytes.
//
// Reads and writes every element once: 8 bytes for a 16-bit element of both operands of a square product, M times fewer than it
// multiplies. A tile of 64 x 64 passes through shared memory, so that neighbouring lanes read what lies closer in the operand,
// and write along K; its rows are an odd number of words apart, so that neither way has bank conflicts.
#pragma once
#include "../common/index.cuh"

namespace matmul {

struct OperandStrides {
    int64_t batch, span, k;  // span: along M of A, along N of B
};

template <class Bits>
__global__ void __launch_bounds__(256) align(const Bits* __restrict__ from, Bits* __restrict__ to, int span, int K,
                                             OperandStrides stride) {
    constexpr int TILE = 64, CHUNK = 16 / sizeof(Bits);
    const int pitch = ceil_div(K, CHUNK) * CHUNK;
    __shared__ Bits tile[TILE][TILE + 4 / sizeof(Bits)];
    const int tiles_span = ceil_div(span, TILE), tiles_k = ceil_div(K, TILE);
    const int batch = blockIdx.x / (tiles_span * tiles_k), in_batch = blockIdx.x % (tiles_span * tiles_k);
    const int first = in_batch / tiles_k * TILE, first_k = in_batch % tiles_k * TILE;
    const bool along_k = stride.k <= stride.span;
    from += batch * stride.batch;
    to += int64_t(batch) * span * pitch;

#pragma unroll
    for (int i = threadIdx.x; i < TILE * TILE; i += 256) {
        const int s = along_k ? i / TILE : i % TILE, k = along_k ? i % TILE : i / TILE;
        if (first + s < span && first_k + k < K) tile[s][k] = from[(first + s) * stride.span + (first_k + k) * stride.k];
    }
    __syncthreads();
#pragma unroll
    for (int i = threadIdx.x; i < TILE * TILE; i += 256) {
        const int s = i / TILE, k = i % TILE;
        if (first + s < span && first_k + k < K) to[int64_t(first + s) * pitch + first_k + k] = tile[s][k];
    }
}

}  // namespace matmul
