// Matrix product on Hopper, tma: one thread requests slices from the copy engine, which fills a ring of stages meanwhile.
//
// In `wgmma` every thread copies 16 chunks of a slice, and multiplies nothing until they are there: memory's latency, 600 ns, for
// products of 300 ns. By Little's law 132 SMs want 22 KB each in flight for 4.8 TB/s at that latency; a slice here is 32 KB.
//
//   - Box: one thread requests it by one instruction. TMA computes addresses, swizzles, writes zeros outside of the operand.
//   - mbarrier: a stage is full when that thread has arrived, with the number of bytes to wait for, and these have landed. TMA
//     writes through the async proxy, so no fence is needed.
//   - Ring: STAGES slices have landed or are on their way. While a slice is multiplied, the threads wait for the products of the
//     one before, and its stage gets another slice. Three stages are 96 KB, so two blocks fit on an SM.
//
// Both operands lie along k, in rows of whole chunks of 16 bytes; the launcher packs others first.
// BM x BN is the tile of a block, BK the depth of a slice, STAGES how many are in shared memory.
// Mirrors tritonkernels/matmul/tma.py.
#pragma once
#include "../common/index.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/plain_result.cuh"

namespace matmul {

constexpr int BK = 64;  // elements of k in a slice: 128 bytes, the width of the swizzle

// Starts the products of a slice, given descriptors: 64 rows of A for each of BLOCKS, in steps of 32 bytes along k.
template <class T, int BLOCKS, int TILES>
__device__ __forceinline__ void multiply(Sums (&sum)[BLOCKS][TILES], uint64_t a, uint64_t b) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step)
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m)
            ::wgmma<T, true, true>(sum[m], a + (m * 64 * 128 + step * 32) / 16, b + step * 32 / 16);
    wgmma_commit();
}

template <class T, class Out, int BM, int BN, int STAGES>
__global__ void __launch_bounds__(128)
tma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
    const Out* c, Out* out, int M, int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
    static_assert(BM % 64 == 0 && BM * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + STAGES * BM * BK;
    uint64_t* const full = reinterpret_cast<uint64_t*>(b_slices + STAGES * BN * BK);  // a stage's slices have landed
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage, 1);
        mbarrier_init_fence();
    }
    __syncthreads();
    const int tiles_m = ceil_div(M, BM), row = blockIdx.x % tiles_m * BM, col = blockIdx.x / tiles_m * BN;
    const int slices = ceil_div(K, BK);

    const auto request = [&](int n) {
        if (threadIdx.x >= 32 || n >= slices || !elect_lane()) return;
        const int stage = n % STAGES;
        mbarrier_arrive_expect(full + stage, (BM + BN) * BK * int(sizeof(T)));
        tma_load(a_slices + stage * BM * BK, a_map, full + stage, n * BK, row, 0);
        tma_load(b_slices + stage * BN * BK, b_map, full + stage, n * BK, col, 0);
    };
    for (int n = 0; n < STAGES; ++n) request(n);

    const uint64_t of_a = wgmma_descriptor(shared_address(a_slices), 0);
    const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
    const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
    Sums sum[BM / 64][BN / 8] = {};
    for (int n = 0; n < slices; ++n) {
        const int stage = n % STAGES;
        mbarrier_wait(full + stage, n / STAGES % 2);
        multiply<T>(sum, of_a + stage * (BM * 128 / 16), of_b + stage * (BN * 128 / 16));
        wgmma_wait<1>();  // the slice before has been multiplied
        if (n > 0) request(n - 1 + STAGES);
    }
    wgmma_wait<0>();

#pragma unroll
    for (int m = 0; m < BM / 64; ++m) result.store(sum[m], row + m * 64, col);
}

}  // namespace matmul
