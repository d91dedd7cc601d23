// The sums of the splits of K, which persistent.cuh wrote to a workspace: adds them up in the order of K, and does what follows.
//
// A thread has four columns of a row, 16 bytes of each split. The last block of a tile could add up its splits, as in split_k.cuh,
// but reads them one after the other from L2, a tile's 64 to 128 KB at a time; here all SMs share that, for a second launch.
// Mirrors _add_splits_kernel of tritonkernels/matmul/split_k.py.
#pragma once
#include "../../common/overlap.cuh"
#include "epilogue.cuh"
#include "store_run.cuh"

namespace matmul {

// `sums` is (splits, batches, M, pitch), pitch a multiple of 4 that is at least N. A block of gridDim.y has a matrix of the batch.
template <class Out>
__global__ void __launch_bounds__(256)
add_parts(const float* __restrict__ sums, const Out* __restrict__ c, const Out* __restrict__ bias, Out* __restrict__ out, int M,
          int N, int splits, int pitch, float alpha, float beta, int activation, Strides stride) {
    constexpr int RUN = 4;
    const int runs = pitch / RUN, at = blockIdx.x * 256 + threadIdx.x, row = at / runs, col = at % runs * RUN;
    if (row >= M || col >= N) return;
    wait_for_earlier_kernels();
    const int64_t matrix = int64_t(M) * pitch;
    const float* from = sums + blockIdx.y * matrix + int64_t(row) * pitch + col;
    float total[RUN] = {};
#pragma unroll 4
    for (int split = 0; split < splits; ++split, from += gridDim.y * matrix) {
        const float4 part = __ldcg(reinterpret_cast<const float4*>(from));
        total[0] += part.x;
        total[1] += part.y;
        total[2] += part.z;
        total[3] += part.w;
    }
    const Epilogue<float, Out> epilogue(c, bias, out, alpha, beta, activation, stride, blockIdx.y);
#pragma unroll
    for (int i = 0; i < RUN; ++i) total[i] = epilogue.scaled(total[i]);
    epilogue.finish(
        [&](const auto& change) {
#pragma unroll
            for (int i = 0; i < RUN; ++i) change(total[i], 0, i);
        },
        row, col, M, N);
    __align__(16) Out run[RUN];
#pragma unroll
    for (int i = 0; i < RUN; ++i) convert(total[i], run[i]);
    store_run(run, epilogue.out, row, col, M, N, stride.out.row, stride.out.col);
}

}  // namespace matmul
