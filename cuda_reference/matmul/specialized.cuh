// Matrix product on Hopper, specialized: a warp does nothing but request slices, and two warpgroups nothing but multiply them.
//
// In `tma` the thread that requests slices also multiplies, so a free stage waits until it gets there. Here a stage has a second
// mbarrier, `empty`: both consumers have read it. The producer waits for nothing else, so it is up to STAGES slices ahead, and
// consumers need not keep in step. setmaxnreg gives them the registers that it does not need: 40 + 2 * 232, not 3 * 168.
//
// So two consumers can have a larger tile, for which less is read. From shared memory, for 16 of k: (64 + 256) * 32 bytes = 10 KB
// for a wgmma of 64 x 256 and 12 KB for two of 64 x 128, in 128 clocks, which could read 16 KB. From L2, for 64 of k:
// (128 + 256) * 128 bytes = 48 KB in 1024 clocks for 128 x 256 and 32 KB in 512 for 128 x 128, a quarter less for each product.
//
// Both operands lie along k, in rows of whole chunks of 16 bytes; the launcher packs others first.
// BM x BN is the tile of a block, BK the depth of a slice (STAGES of them), ROWS a consumer's part of BM.
// Mirrors tritonkernels/matmul/specialized.py.
#pragma once
#include "../common/index.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/plain_result.cuh"

namespace matmul {

constexpr int CONSUMERS = 2;
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
__global__ void __launch_bounds__((CONSUMERS + 1) * 128)
specialized(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
            const Out* c, Out* out, int M, int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
    constexpr int ROWS = BM / CONSUMERS;
    static_assert(ROWS % 64 == 0 && ROWS * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + STAGES * BM * BK;
    uint64_t* const full = reinterpret_cast<uint64_t*>(b_slices + STAGES * BN * BK);  // a stage's slices have landed
    uint64_t* const empty = full + STAGES;                                            // its readers have read them
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(full + stage, 1);
        for (int stage = 0; stage < STAGES; ++stage) mbarrier_init(empty + stage, CONSUMERS);
        mbarrier_init_fence();
    }
    __syncthreads();
    const int tiles_m = ceil_div(M, BM), row = blockIdx.x % tiles_m * BM, col = blockIdx.x / tiles_m * BN;
    const int slices = ceil_div(K, BK), warpgroup = own_warpgroup();

    const auto request = [&](int n) {
        const int stage = n % STAGES;
        mbarrier_wait(empty + stage, n / STAGES % 2 ^ 1);  // of the round before; in the first it returns at once
        mbarrier_arrive_expect(full + stage, (BM + BN) * BK * int(sizeof(T)));
        tma_load(a_slices + stage * BM * BK, a_map, full + stage, n * BK, row, 0);
        tma_load(b_slices + stage * BN * BK, b_map, full + stage, n * BK, col, 0);
    };
    if (warpgroup == CONSUMERS) {
        give_up_registers<40>();
        if (threadIdx.x / 32 == CONSUMERS * 4 && elect_lane()) {
#pragma unroll 1  // unrolled it wants more registers than are left
            for (int n = 0; n < slices; ++n) request(n);
        }
    } else {
        take_registers<232>();
        const auto give_back = [&](int stage) {
            if (threadIdx.x % 128 == 0) mbarrier_arrive(empty + stage);
        };
        const uint64_t of_a = wgmma_descriptor(shared_address(a_slices + warpgroup * ROWS * BK), 0);
        const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
        const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
        Sums sum[ROWS / 64][BN / 8] = {};
        for (int n = 0; n < slices; ++n) {
            const int stage = n % STAGES;
            mbarrier_wait(full + stage, n / STAGES % 2);
            multiply<T>(sum, of_a + stage * (BM * 128 / 16), of_b + stage * (BN * 128 / 16));
            wgmma_wait<1>();  // the slice before has been multiplied
            if (n > 0) give_back((n - 1) % STAGES);
        }
        wgmma_wait<0>();
#pragma unroll
        for (int m = 0; m < ROWS / 64; ++m) result.store(sum[m], row + warpgroup * ROWS + m * 64, col);
    }
}

}  // namespace matmul
