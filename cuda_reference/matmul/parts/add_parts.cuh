// The sums of the splits of K, which persistent.cuh wrote to a workspace: adds them up in the order of K, and does what follows.
//
// A thread has four columns of a row, 16 bytes of each split. The last block of a tile could add up its splits, as in split_k.cuh,
// but a tile's 64 to 128 KB of each would go through one SM; here all SMs share that, for a second launch. Few tiles have many
// splits, and few threads: each would read 132 parts, 8 on their way at a time. So groups of threads add up shares of the
// splits, and the first group adds up the groups' sums.
// Mirrors _add_splits_kernel of tritonkernels/matmul/split_k.py.
#pragma once
#include "../../common/overlap.cuh"
#include "epilogue.cuh"
#include "store_run.cuh"

namespace matmul {

constexpr int ADDING = 256, RUN = 4, PARTS_AT_ONCE = 8;  // threads of a block, columns of a thread: add_parts.py

__device__ __forceinline__ void add(float4& total, const float4& part) {
    total.x += part.x;
    total.y += part.y;
    total.z += part.z;
    total.w += part.w;
}

// The sum of so many parts, `apart` from each other.
__device__ __forceinline__ float4 sum_of_parts(const float* from, int parts, int64_t apart) {
    float4 total = {};
    for (int first = 0; first < parts; first += PARTS_AT_ONCE) {
        float4 part[PARTS_AT_ONCE];
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; ++i) {
            const int inside = min(first + i, parts - 1);
            part[i] = __ldcg(reinterpret_cast<const float4*>(from + inside * apart));
        }
#pragma unroll
        for (int i = 0; i < PARTS_AT_ONCE; ++i)
            if (first + i < parts) add(total, part[i]);
    }
    return total;
}

// `sums` is (splits, batches, M, pitch), pitch a multiple of 4 that is at least N. A block has a part of one matrix: a grid has more
// blocks along x than batches could be along y. Its groups of threads have the same runs of columns; GROUPS are the shares of the
// splits.
template <class Out, int GROUPS>
__global__ void __launch_bounds__(ADDING)
add_parts(const float* __restrict__ sums, const Out* __restrict__ c, const Out* __restrict__ bias, Out* __restrict__ out, int M,
          int N, int splits, int pitch, float alpha, float beta, int activation, Strides stride) {
    constexpr int RUNS = ADDING / GROUPS;
    const int runs = pitch / RUN, group = threadIdx.x / RUNS, in_group = threadIdx.x % RUNS;
    const int blocks = (M * runs + RUNS - 1) / RUNS, batch = blockIdx.x / blocks, batches = gridDim.x / blocks;
    const int at = (blockIdx.x - batch * blocks) * RUNS + in_group, row = at / runs, col = at % runs * RUN;
    const bool inside = row < M && col < N;
    wait_for_earlier_kernels();
    const int share = (splits + GROUPS - 1) / GROUPS, first = group * share, parts = min(share, splits - first);
    const int64_t matrix = int64_t(M) * pitch, apart = batches * matrix;
    const float* const own = sums + batch * matrix + int64_t(row) * pitch + col;
    float4 whole = {};
    if (inside) whole = sum_of_parts(own + first * apart, parts, apart);
    if constexpr (GROUPS > 1) {
        __shared__ float4 of_groups[GROUPS][RUNS];
        of_groups[group][in_group] = whole;
        __syncthreads();
        for (int other = 1; other < GROUPS; ++other) add(whole, of_groups[other][in_group]);
    }
    if (group > 0 || !inside) return;
    float total[RUN] = {whole.x, whole.y, whole.z, whole.w};
    const Epilogue<float, Out> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
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
