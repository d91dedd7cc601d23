// Matrix product on Hopper, tma: one thread requests slices from the copy engine, which fills a ring of stages meanwhile.
//
// In `wgmma` all threads copy a slice, 16 cp.async each with its address and its swizzle, and then wait for it, 600 ns or more from
// DRAM, before they multiply it for 0.3. Here
//
//   - TMA copies a box of an operand by one instruction of one thread. It computes the addresses, swizzles, and writes zeros for
//     elements outside of the operand. The launcher describes the operands (CUtensorMap).
//   - A stage's mbarrier says that its slices have landed: its phase ends when one thread has arrived, which announces the bytes,
//     and the copy engine has counted them down. No registers, no fence: TMA writes by the async proxy, too.
//   - STAGES slices are in shared memory or on their way. Once the products of a slice are started, those of the slice before have
//     ended after another wait, and the next slice is requested for their stage.
//
// By Little's law 132 SMs that read 4.8 TB/s with a latency of 600 ns need 22 KB each in flight; a stage of 128 x 128 is 32 KB. With
// three of them two blocks fit on an SM.
// Both operands lie along k, in rows of whole chunks; the launcher packs others first.
//
// Glossary: BM x BN is the tile of a block, BK the depth of a slice, STAGES the slices in shared memory.
// Mirrors tritonkernels/matmul/tma.py.
#pragma once
#include "../common/index.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/plain_result.cuh"

namespace matmul {

constexpr int BK = 64;  // elements of k in a slice: 128 bytes, the width of the swizzle

// Starts the products of a slice, of descriptors a and b: 64 rows of A for each of BLOCKS, in steps of 32 bytes along k.
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

// A place in the ring of stages, and the parity of its barriers, which changes in every round.
template <int STAGES> struct Ring {
    unsigned stage = 0, parity = 0;
    __device__ __forceinline__ void advance(unsigned slices = 1) {
        stage += slices;
        parity ^= stage / STAGES & 1;
        stage %= STAGES;
    }
};

template <class T, class Out, int BM, int BN, int STAGES>
__global__ void __launch_bounds__(128)
tma(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const Out* c, Out* out, int M, int N,
    int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
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

    const bool requests = threadIdx.x < 32 && elect_lane();
    const auto request = [&](int slice, int stage) {
        if (!requests || slice >= slices) return;
        mbarrier_arrive_expect(full + stage, (BM + BN) * BK * int(sizeof(T)));
        tma_load(a_slices + stage * BM * BK, a_map, full + stage, slice * BK, row, 0);
        tma_load(b_slices + stage * BN * BK, b_map, full + stage, slice * BK, col, 0);
    };
    for (int slice = 0; slice < STAGES; ++slice) request(slice, slice);

    const uint64_t of_a = wgmma_descriptor(shared_address(a_slices), 0);
    const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
    Sums sum[BM / 64][BN / 8] = {};
    Ring<STAGES> ring;
    int last = 0;  // the stage before
    for (int slice = 0; slice < slices; ++slice) {
        mbarrier_wait(full + ring.stage, ring.parity);
        multiply<T>(sum, of_a + ring.stage * (BM * 128 / 16), of_b + ring.stage * (BN * 128 / 16));
        wgmma_wait<1>();  // the slice before has been multiplied
        if (slice > 0) request(slice - 1 + STAGES, last);
        last = ring.stage;
        ring.advance();
    }
    wgmma_wait<0>();

    const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
#pragma unroll
    for (int m = 0; m < BM / 64; ++m) result.store(sum[m], row + m * 64, col);
}

}  // namespace matmul
