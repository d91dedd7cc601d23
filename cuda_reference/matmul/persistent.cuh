// Matrix product on Hopper, persistent (TMA, wgmma): one thread makes the copy engine fill slices, warpgroups multiply them.
//
// In `pipelined` warps copy, load fragments and multiply in turns, and reach some 60 % of the tensor cores. Here three things
// change:
//
//   - wgmma reads both operands from shared memory: no fragments in registers, no ldmatrix.
//   - TMA computes the addresses, swizzles, rounds fp32 to tf32, and writes zeros for elements outside of the operands. One
//     thread of a producer warpgroup requests the slices, and the producer's registers go to the consumers (setmaxnreg).
//   - No barrier of the block in the loop: each stage has an mbarrier that says that its slice has landed, and one that says
//     that all consumers have read it.
//
// Per 16 of k two warpgroups read 2 (64 + 256) * 32 bytes = 20 KB of shared memory for a 128 x 256 tile. Its 2^19 multiply-adds
// take 256 clocks at 2048 per clock, in which 32 KB could be read.
//
// A block computes every gridDim.x-th tile, so that the slices of the next tile land while this one's result is written. The
// copy engine writes it too (OUT_BOXES), from two boxes of shared memory per warpgroup, one filled while the other is read. A
// result that TMA cannot write is stored from registers, 16 bytes per lane.
// Glossary: BM x BN is the block tile, of which each of CONSUMERS warpgroups owns BM / CONSUMERS rows; a slice is 128 bytes of k,
// a step 32.
// Mirrors tritonkernels/matmul/persistent.py.
#pragma once
#include "../common/index.cuh"
#include "../common/raster.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/lane_sums.cuh"

namespace matmul {

constexpr int SLICE = 128, BLOCK_BYTES = 64 * SLICE;  // bytes of k; bytes of 64 of SPAN in a slice

// A slice of an operand in shared memory. K_MAJOR: SPAN rows of 128 bytes along k, in one box. Else a box for every 64 of SPAN,
// with a row per k. Either way 64 of SPAN are BLOCK_BYTES.
template <class T, int SPAN, bool K_MAJOR> struct OperandSlice {
    static constexpr int DEPTH = SLICE / sizeof(T), BYTES = SPAN * SLICE;
    static constexpr int STEP = K_MAJOR ? 32 : 16 * SLICE;  // bytes from a step to the next
    static_assert(K_MAJOR || sizeof(T) == 2, "wgmma reads bytes and tf32 along k only, and 64 elements are 128 bytes");

    __device__ __forceinline__ static void copy(unsigned char* to, const CUtensorMap& map, uint64_t* barrier, int first,
                                                int k, int batch) {
        if constexpr (K_MAJOR) {
            tma_load(to, map, barrier, k, first, batch);
        } else {
#pragma unroll
            for (int i = 0; i < SPAN / 64; ++i) tma_load(to + i * BLOCK_BYTES, map, barrier, first + i * 64, k, batch);
        }
    }
};

// A position in the ring of stages; the parity of a stage's barriers changes in every round.
template <int STAGES> struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// Boxes of 64 rows of 128 bytes in shared memory, through which a warpgroup writes its result.
template <class Out> struct OutBoxes {
    static constexpr int COLUMNS = SLICE / sizeof(Out), COUNT = 2;
    const CUtensorMap& map;
    unsigned char* boxes;
    bool asks;  // whether this is the thread of the warpgroup that requests the stores
    int next = 0;

    template <class Number, int TILES>
    __device__ __forceinline__ void store(const Number (&results)[1][TILES][4], int first_row, int first_col, int batch) {
#pragma unroll
        for (int tile = 0; tile < TILES; tile += COLUMNS / 8) {
            unsigned char* const box = boxes + next * BLOCK_BYTES;
            next ^= 1;
            if (asks) tma_store_wait<COUNT - 1>();  // the box's previous contents have been read
            warpgroup_barrier();
            for_runs<Out, COLUMNS / 8>(results, tile, [&](const auto& run, int row, int col) {
                const int at_row = threadIdx.x % 128 / 32 * 16 + row, byte = col * int(sizeof(Out));
                const int chunk = byte / 16 ^ at_row % 8;  // the swizzle
                using Word = RunWord<sizeof run>;
                *reinterpret_cast<Word*>(box + at_row * SLICE + chunk * 16 + byte % 16) = reinterpret_cast<const Word&>(run);
            });
            tma_store_fence();
            warpgroup_barrier();
            if (asks) {
                tma_store(map, box, first_col + tile * 8, first_row, batch);
                tma_store_commit();
            }
        }
    }
};

template <class T, class Out, class Sum, int BM, int BN, int CONSUMERS, int STAGES, bool A_K_MAJOR, bool B_K_MAJOR,
          bool OUT_BOXES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128, 1)
persistent(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
          const __grid_constant__ CUtensorMap out_map, const Out* __restrict__ c, const Out* __restrict__ bias,
          Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
          int batches, int group) {
    static_assert(CONSUMERS == 1 || CONSUMERS == 2, "registers are shared out among so many");
    static_assert(BM % (CONSUMERS * 64) == 0 && BM <= 256 && BN <= 256, "a wgmma has 64 rows, a box 256");
    constexpr int BLOCKS = BM / CONSUMERS / 64, STEPS = SLICE / 32;  // 64-row blocks per consumer; steps per slice
    using ASlice = OperandSlice<T, BM, A_K_MAJOR>;
    using BSlice = OperandSlice<T, BN, B_K_MAJOR>;
    unsigned char* const a_slices = dynamic_shared<unsigned char>();  // STAGES of each
    unsigned char* const b_slices = a_slices + STAGES * ASlice::BYTES;
    unsigned char* const boxes = b_slices + STAGES * BSlice::BYTES;  // of the result: two per consumer, or none
    uint64_t* const full = reinterpret_cast<uint64_t*>(boxes + OUT_BOXES * CONSUMERS * OutBoxes<Out>::COUNT * BLOCK_BYTES);
    uint64_t* const empty = full + STAGES;
    if (threadIdx.x == 0) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, CONSUMERS * 4);  // one lane of each warp that reads
        }
        mbarrier_init_fence();
    }
    __syncthreads();

    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), tiles = tiles_m * tiles_n;
    const int slices = ceil_div(K, ASlice::DEPTH);
    const auto place = [&](int i) { return rasterize(i % tiles, tiles_m, tiles_n, group); };
    Ring<STAGES> ring;
    if (threadIdx.x >= CONSUMERS * 128) {
        if constexpr (CONSUMERS > 1) give_up_registers<40>();
        if (threadIdx.x != CONSUMERS * 128) return;
        for (int i = blockIdx.x; i < batches * tiles; i += gridDim.x) {
            const TileIndex tile = place(i);
            const int a_batch = stride.a.batch == 0 ? 0 : i / tiles, b_batch = stride.b.batch == 0 ? 0 : i / tiles;
#pragma unroll 1
            for (int slice = 0; slice < slices; ++slice) {
                uint64_t* const landed = full + ring.stage;
                mbarrier_wait(empty + ring.stage, ring.parity ^ 1);  // of the previous round; in the first it returns at once
                mbarrier_arrive_expect(landed, ASlice::BYTES + BSlice::BYTES);
                const int k = slice * ASlice::DEPTH;
                ASlice::copy(a_slices + ring.stage * ASlice::BYTES, a_map, landed, tile.m * BM, k, a_batch);
                BSlice::copy(b_slices + ring.stage * BSlice::BYTES, b_map, landed, tile.n * BN, k, b_batch);
                ring.advance();
            }
        }
    } else {
        if constexpr (CONSUMERS > 1) take_registers<232>();  // 40 + 2 * 232 is three times the 168 that each starts with
        const int first_row = threadIdx.x / 128 * (BM / CONSUMERS), warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
        const uint64_t a_first = wgmma_descriptor(shared_address(a_slices + first_row * SLICE), BLOCK_BYTES);
        const uint64_t b_first = wgmma_descriptor(shared_address(b_slices), BLOCK_BYTES);
        OutBoxes<Out> out_boxes{out_map, boxes + threadIdx.x / 128 * OutBoxes<Out>::COUNT * BLOCK_BYTES, threadIdx.x % 128 == 0};
        for (int i = blockIdx.x; i < batches * tiles; i += gridDim.x) {
            LaneSums<Sum> sum[BLOCKS][1][BN / 8] = {};
            int last = 0;  // the stage that the wgmmas in flight read
#pragma unroll 1
            for (int slice = 0; slice < slices; ++slice) {
                mbarrier_wait(full + ring.stage, ring.parity);
                const uint64_t a = a_first + ring.stage * (ASlice::BYTES >> 4), b = b_first + ring.stage * (BSlice::BYTES >> 4);
                wgmma_fence();
#pragma unroll
                for (int k = 0; k < STEPS; ++k)
#pragma unroll
                    for (int m = 0; m < BLOCKS; ++m)
                        wgmma<T, A_K_MAJOR, B_K_MAJOR>(sum[m][0], a + ((m * BLOCK_BYTES + k * ASlice::STEP) >> 4),
                                                       b + (k * BSlice::STEP >> 4));
                wgmma_commit();
                wgmma_wait<1>();
                if (slice > 0 && lane == 0) mbarrier_arrive(empty + last);
                last = ring.stage;
                ring.advance();
            }
            wgmma_wait<0>();
            if (slices > 0 && lane == 0) mbarrier_arrive(empty + last);
            const TileIndex tile = place(i);
            const Epilogue<Sum, Out> epilogue(c, bias, out, alpha, beta, activation, stride, i / tiles);
#pragma unroll
            for (int m = 0; m < BLOCKS; ++m) {
                wgmma_results(sum[m][0]);
                const int row = tile.m * BM + first_row + m * 64, col = tile.n * BN;
                if constexpr (OUT_BOXES) {
                    Scalar<Sum> results[1][BN / 8][4];
                    finish(results, sum[m], epilogue, row + warp * 16 + lane / 4, col + lane % 4 * 2, M, N);
                    out_boxes.store(results, row, col, i / tiles);
                } else {
                    store_tile(sum[m], epilogue, row + warp * 16, col, M, N);
                }
            }
        }
        if (OUT_BOXES && out_boxes.asks) tma_store_wait<0>();  // the stores read shared memory, which ends with the block
    }
}

}  // namespace matmul
