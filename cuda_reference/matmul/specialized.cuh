// Matrix product on Hopper, specialized: a warp requests slices, two warpgroups multiply them, and no barrier of the block is left.
//
// In `tma` the thread that requests is one of those who multiply: it requests a slice only when it comes past, after a wait for its
// own products. Here a producer warp does nothing else. A stage has two mbarriers: `full` says that its slices have landed, `empty`
// that both consumers have read them. So the producer is ahead by as many slices as there are stages, and a consumer that is late
// stops nobody.
//
// A producer needs few registers. setmaxnreg gives its others to the consumers: 40 and 2 * 232 instead of 3 * 168. That is what
// pays for the larger tile, 128 x 256, of which a consumer has 64 rows, 128 sums a thread. Larger tiles want fewer bytes: for 16 of
// k a wgmma of 64 x 256 reads (64 + 256) * 32 bytes = 10 KB of shared memory, for products of 128 clocks in which 16 KB could be
// read; two of 64 x 128, which do as much, read 12 KB. The copies that fill the stages want the same shared memory: for 64 of k
// 48 KB in 1024 clocks, where 128 x 128 takes 32 KB in 512. L2 sends a quarter less.
// Both operands lie along k, in rows of whole chunks; the launcher packs others first.
//
// Glossary: BM x BN is the tile of a block, ROWS what a consumer has of it, BK the depth of a slice, STAGES those in shared memory.
// Mirrors tritonkernels/matmul/specialized.py.
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

constexpr int CONSUMERS = 2;

template <class T, class Out, int BM, int BN, int STAGES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128)
specialized(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const Out* c, Out* out, int M,
            int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
    constexpr int ROWS = BM / CONSUMERS;  // of a consumer
    static_assert(ROWS % 64 == 0 && ROWS * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + STAGES * BM * BK;
    uint64_t* const full = reinterpret_cast<uint64_t*>(b_slices + STAGES * BN * BK);  // a stage's slices have landed
    uint64_t* const empty = full + STAGES;                                            // its readers have read them
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, CONSUMERS);
        }
        mbarrier_init_fence();
    }
    __syncthreads();
    const int tiles_m = ceil_div(M, BM), row = blockIdx.x % tiles_m * BM, col = blockIdx.x / tiles_m * BN;
    const int slices = ceil_div(K, BK), warpgroup = own_warpgroup();

    Ring<STAGES> ring;
    if (warpgroup == CONSUMERS) {
        give_up_registers<40>();
        if (threadIdx.x / 32 == CONSUMERS * 4 && elect_lane()) {
            for (int slice = 0; slice < slices; ++slice) {
                mbarrier_wait(empty + ring.stage, ring.parity ^ 1);  // of the round before; in the first it returns at once
                mbarrier_arrive_expect(full + ring.stage, (BM + BN) * BK * int(sizeof(T)));
                tma_load(a_slices + ring.stage * BM * BK, a_map, full + ring.stage, slice * BK, row, 0);
                tma_load(b_slices + ring.stage * BN * BK, b_map, full + ring.stage, slice * BK, col, 0);
                ring.advance();
            }
        }
    } else {
        take_registers<232>();
        const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
        const auto give_back = [&](int stage) {
            if (threadIdx.x % 128 == 0) mbarrier_arrive(empty + stage);
        };
        const uint64_t of_a = wgmma_descriptor(shared_address(a_slices + warpgroup * ROWS * BK), 0);
        const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
        Sums sum[ROWS / 64][BN / 8] = {};
        int last = 0;  // the stage before
        for (int slice = 0; slice < slices; ++slice) {
            mbarrier_wait(full + ring.stage, ring.parity);
            multiply<T>(sum, of_a + ring.stage * (BM * 128 / 16), of_b + ring.stage * (BN * 128 / 16));
            wgmma_wait<1>();  // the slice before has been multiplied
            if (slice > 0) give_back(last);
            last = ring.stage;
            ring.advance();
        }
        wgmma_wait<0>();
#pragma unroll
        for (int m = 0; m < ROWS / 64; ++m) result.store(sum[m], row + warpgroup * ROWS + m * 64, col);
    }
}

}  // namespace matmul
