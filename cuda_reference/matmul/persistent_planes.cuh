// FP32 matrix product on Hopper, persistent planes: `planes` by the kernel of `persistent` (TMA, wgmma), for fp16x3.
//
// mma.sync reaches some 60 % of Hopper's tensor cores. Two products by wgmma are all that planes need, if these lie in memory as
// persistent.cuh reads them. Rows of A have the low plane before the high one, rows of B the other way round:
//
//     A: low | high        B: high | low
//
// As matrices of 2 K columns their product is low * high + high * low, the corrections. A's right half by B's left one is the main
// sum. In both the sums of 64 products, a slice, are added to FP32 sums by FADD (PROMOTES), as tensor cores truncate theirs;
// but in WIDE tiles not those of the corrections, which need not be as exact.
//
// Here is what follows: the kernel that joins main sum and corrections, shifts rows and columns back, and has the epilogue. It
// reads 8 bytes of each element of the result, next to 3 K products. No Triton twin: Triton's `planes` multiplies by wgmma.
#pragma once
#include "../common/overlap.cuh"
#include "parts/epilogue.cuh"
#include "parts/scheme.cuh"
#include "parts/store_run.cuh"

namespace matmul {

constexpr int JOINING = 256, JOINED = 4;  // threads of a block, columns of a thread: persistent_planes.py

// `sums` and `corrections` are (batches, M, pitch), pitch a multiple of 4 that is at least N. A block has a part of one matrix:
// a grid has more blocks along x than batches could be along y.
template <class Plane>
__global__ void __launch_bounds__(JOINING)
persistent_planes(const float* __restrict__ sums, const float* __restrict__ corrections, const float* __restrict__ c,
            const float* __restrict__ bias, float* __restrict__ out, int M, int N, int pitch, float alpha, float beta,
            int activation, Strides stride, const int* __restrict__ a_ranges, const int* __restrict__ b_ranges,
            RangeStrides ranges) {
    const int runs = pitch / JOINED;
    const int64_t blocks = (int64_t(M) * runs + JOINING - 1) / JOINING;  // for each matrix
    const int batch = int(blockIdx.x / blocks);
    const int64_t at = (blockIdx.x - batch * blocks) * JOINING + threadIdx.x;
    const int row = int(at / runs), col = int(at % runs) * JOINED;
    wait_for_earlier_kernels();
    if (row >= M || col >= N) return;
    const int64_t from = (int64_t(batch) * M + row) * pitch + col;
    const float4 main = __ldcg(reinterpret_cast<const float4*>(sums + from));
    const float4 others = __ldcg(reinterpret_cast<const float4*>(corrections + from));
    float total[JOINED] = {main.x, main.y, main.z, main.w};
    const float correction[JOINED] = {others.x, others.y, others.z, others.w};
    a_ranges += batch * ranges.a, b_ranges += batch * ranges.b;
    const int a_shift = shift_of(a_ranges[row]);
    const float a_counted = a_ranges[2 * M + row];
    const Epilogue<float, float> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
#pragma unroll
    for (int i = 0; i < JOINED; ++i) {
        const int b = min(col + i, N - 1);
        float& sum = total[i];
        if (fabsf(sum) < INFINITY) sum += correction[i] * (1 / Planes<Plane>::STEP);  // else infinity times a low plane may be NaN
        sum = epilogue.scaled(shifted_back(sum, a_shift, a_counted, shift_of(b_ranges[b]), b_ranges[2 * N + b]));
    }
    epilogue.finish(
        [&](const auto& change) {
#pragma unroll
            for (int i = 0; i < JOINED; ++i) change(total[i], 0, i);
        },
        row, col, M, N);
    store_run(total, epilogue.out, row, col, M, N, stride.out.row, stride.out.col);
}

}  // namespace matmul
