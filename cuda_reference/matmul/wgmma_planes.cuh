// FP32 matrix product on Hopper, wgmma planes (TMA, wgmma): `fused_planes` with specialised warpgroups, each number split once.
//
// In `fused_planes` each warp splits what it loads: of a 128 x 64 tile, 8 warps of 32 x 32 split A twice and B four times, in the
// time of 24 mma for 16 numbers of a lane. And mma.sync reaches some 60 % of Hopper's tensor cores. Here
//
//   - TMA brings slices of both operands in FP32, as they lie, along K or across it. A producer warpgroup requests them.
//   - A splitter warpgroup makes B's planes once for the block: the high one in the place of the slice, the low one beside it.
//     Across K it turns the slice as well, since wgmma reads 4-byte operands along K only.
//   - Each consumer warpgroup has 64 rows. wgmma takes its left operand from registers, so consumers load fragments of A as it
//     lies, split them and multiply: three wgmmas for 8 of k.
//
// Per 32 of k a consumer of 64 x 64 sums has 12 wgmmas, 384 clocks, and a lane splits 16 numbers, some 150 instructions. Of two
// consumers one multiplies while the other splits; with one, the SM has two blocks. Shared memory passes 112 KB for a slice of
// 128 x 64, 900 clocks, in which it takes 768 to multiply: it is what limits large products, at 85 % of the tensor cores.
//
// Which k a wgmma's 8 columns of A hold is free as long as B's rows hold the same. If A lies across K, a lane has k = 2 t and
// 2 t + 1, not t and t + 4 (t = lane % 4): then the loads of a warp use each bank once, and B's planes have the even k first.
//
// The sums are those of `planes`: plane 0 times plane 0 over 32 products, then added by FADD; corrections apart.
//
// Blocks share tiles to the slice, as in gemm's `stream_k`: a product of one tile and long K is read by all SMs, 128 bytes of each
// row at a time. Adding up takes trips to L2, a part after the other, or in two rounds (add_splits.cuh). So a tile has at most
// PARTS of them (wgmma_planes.py), but where there are so few tiles that all SMs should share them. Then each tile has the same
// number of parts: runs that begin anywhere would be at different k at a time, and read operands that L2 does not hold once for
// each tile.
//
// No Triton twin: Triton's fused_planes leaves to the compiler who splits what, and when.
#pragma once
#include "../common/index.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "../common/shared.cuh"
#include "../common/wgmma.cuh"
#include "parts/plane_products.cuh"
#include "parts/shared_tiles.cuh"
#include "parts/tma_slices.cuh"

namespace matmul {

// The planes of numbers, as if all were ordinary; where a lane of the warp has another one, all are split again, with care. Here
// a tiny number is another one, too: split apart from its factors, it may meet an infinity.
template <int COUNT>
__device__ __forceinline__ void split_all(float (&high)[COUNT], float (&low)[COUNT], const float (&numbers)[COUNT]) {
    const auto split_each = [&](const auto& split) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            float planes[2];
            split(planes, numbers[i]);
            high[i] = planes[0];
            low[i] = planes[1];
        }
    };
    float left = 0;                // a sum that is not finite if one of the numbers is not
    unsigned smallest = ~0u;       // twice the bits of one, without the sign, less 1: of 0 that is the largest
    constexpr unsigned TO_0 = 0x1000;  // smaller bits are those of 0 in the high plane
    split_each([&](float(&planes)[2], float number) {
        left += split_ordinary(planes, number);
        smallest = min(smallest, 2 * __float_as_uint(number) - 1);
    });
    if (__any_sync(0xffffffffu, !(fabsf(left) < INFINITY) || smallest < 2 * TO_0 - 1))
        split_each([](float(&planes)[2], float number) { split_number(planes, number, number); });
}

// Where element k of a line is in a slice that lies along K, or in one that lies across it, in boxes of 32 of the span.
__device__ __forceinline__ int place_along_k(int line, int k) { return line * SLICE + ((k / 4 ^ line % 8) * 16) + k % 4 * 4; }
__device__ __forceinline__ int place_across_k(int line, int k) {
    return line / 32 * (32 * SLICE) + k * SLICE + ((line % 32 / 4 ^ k % 8) * 16) + line % 4 * 4;
}

// A consumer's 64 rows of a slice of A.
template <bool K_MAJOR> struct RowsOfA {
    int row;  // of this lane's first fragment

    // The k of column `at` of a wgmma, of its 8.
    __device__ __forceinline__ static int k_of(int at) { return K_MAJOR ? at : at % 4 * 2 + at / 4; }

    // This lane's fragment of 8 of k, the step-th of the slice.
    __device__ __forceinline__ void load(float (&fragment)[4], const unsigned char* slice, int step) const {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int line = row + i % 2 * 8, k = step * 8 + k_of(threadIdx.x % 4 + i / 2 * 4);
            fragment[i] = *reinterpret_cast<const float*>(slice + (K_MAJOR ? place_along_k(line, k) : place_across_k(line, k)));
        }
    }
};

// STEPS fragments of A, and their planes, which wgmma reads from registers.
template <int STEPS> struct PlanesOfA {
    float fragments[STEPS][4], high[STEPS][4], low[STEPS][4];

    template <bool K_MAJOR>
    __device__ __forceinline__ void load(const RowsOfA<K_MAJOR>& rows, const unsigned char* slice, int first) {
#pragma unroll
        for (int i = 0; i < STEPS; ++i) rows.load(fragments[i], slice, first + i);
    }
    __device__ __forceinline__ void split() {
#pragma unroll
        for (int i = 0; i < STEPS; ++i) split_all(high[i], low[i], fragments[i]);
    }

    // Starts the products of the steps first, ... of a slice, whose own sums begin with step 0.
    template <int TILES>
    __device__ __forceinline__ void multiply(LaneSums<float> (&own)[TILES], LaneSums<float> (&corrections)[TILES], uint64_t b,
                                             uint64_t low_b, int first) {
        const auto words = [](float(&of)[4]) -> unsigned(&)[4] { return reinterpret_cast<unsigned(&)[4]>(of); };
#pragma unroll
        for (int i = 0; i < STEPS; ++i) {
            const int step = (first + i) * 32 >> 4;
            if (first + i == 0)
                wgmma<float, false>(own, words(high[i]), b);
            else
                wgmma<float>(own, words(high[i]), b + step);
            wgmma<float>(corrections, words(low[i]), b + step);
            wgmma<float>(corrections, words(high[i]), low_b + step);
        }
    }
};

// The splitter's part of B: a thread has a column, and of every slice 8 of k once or several times. k_of as in RowsOfA.
template <int BN, bool K_MAJOR, class KOf>
__device__ __forceinline__ void make_planes(unsigned char* slice, unsigned char* low_plane, const KOf& k_of) {
    constexpr int COLUMNS = BN < 128 ? BN : 128, EIGHTS = BN / 32, APART = 128 / COLUMNS;
    static_assert(EIGHTS * APART == 4 && BN <= 128, "128 threads have 32 of k of each column");
    const int column = threadIdx.x % COLUMNS, first = threadIdx.x % 128 / COLUMNS;
    float numbers[EIGHTS][8];
#pragma unroll
    for (int i = 0; i < EIGHTS; ++i) {
        const int k = (first + i * APART) * 8;
        if constexpr (K_MAJOR) {
#pragma unroll
            for (int half = 0; half < 2; ++half)
                reinterpret_cast<float4&>(numbers[i][half * 4]) =
                    *reinterpret_cast<const float4*>(slice + place_along_k(column, k + half * 4));
        } else {
#pragma unroll
            for (int j = 0; j < 8; ++j)
                numbers[i][j] = *reinterpret_cast<const float*>(slice + place_across_k(column, k + j));
        }
    }
    if constexpr (!K_MAJOR) warpgroup_barrier();  // all is read: the planes lie elsewhere
#pragma unroll
    for (int i = 0; i < EIGHTS; ++i) {
        __align__(16) float high[8], low[8], in_order[8];
#pragma unroll
        for (int j = 0; j < 8; ++j) in_order[j] = numbers[i][k_of(j)];
        split_all(high, low, in_order);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int to = place_along_k(column, (first + i * APART) * 8 + half * 4);
            *reinterpret_cast<float4*>(slice + to) = reinterpret_cast<const float4&>(high[half * 4]);
            *reinterpret_cast<float4*>(low_plane + to) = reinterpret_cast<const float4&>(low[half * 4]);
        }
    }
}

// Registers of a thread of each role; of one with 64 x 128 sums, three sets of 64, as many as there are.
template <int CONSUMERS, int BN> struct PlaneRegisters {
    static constexpr int BLOCKS = CONSUMERS == 1 && BN == 64 ? 2 : 1;  // of an SM
    static constexpr int AT_FIRST = 65536 / 128 / (CONSUMERS + 2) / BLOCKS / 8 * 8;
    static constexpr int CONSUMER = BN > 64 ? 216 : CONSUMERS == 1 ? 144 : CONSUMERS == 2 ? 176 : 136;
    static constexpr int PRODUCER = 24, SPLITTER = CONSUMERS == 1 ? 72 : CONSUMERS == 2 ? (BN > 64 ? 56 : 96) : 48;
    static_assert(CONSUMERS * CONSUMER + SPLITTER + PRODUCER <= (CONSUMERS + 2) * AT_FIRST, "some would wait for ever");
};

template <int BM, int BN, int STAGES, bool A_K_MAJOR, bool B_K_MAJOR>
__global__ void __launch_bounds__((BM / 64 + 2) * 128, PlaneRegisters<BM / 64, BN>::BLOCKS)
wgmma_planes(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map, const float* __restrict__ c,
             const float* __restrict__ bias, float* __restrict__ out, int M, int N, int K, float alpha, float beta,
             int activation, Strides stride, int batches, int group, float* parts, int* counters, int whole_tiles, int sharers) {
    constexpr int CONSUMERS = BM / 64, DEPTH = 32, STEPS = DEPTH / 8, TILES = BN / 8;
    static_assert(BM % 64 == 0 && (BN == 64 || BN == 128), "a consumer has 64 rows; the splitter's threads whole columns");
    using Of = PlaneRegisters<CONSUMERS, BN>;
    using ASlice = OperandSlice<float, BM, A_K_MAJOR>;
    using BSlice = OperandSlice<float, BN, B_K_MAJOR>;
    unsigned char* const a_slices = dynamic_shared<unsigned char>();  // STAGES of each
    unsigned char* const b_slices = a_slices + STAGES * ASlice::BYTES;
    unsigned char* const low_planes = b_slices + STAGES * BSlice::BYTES;
    uint64_t* const landed = reinterpret_cast<uint64_t*>(low_planes + STAGES * BSlice::BYTES);
    uint64_t *const made = landed + STAGES, *const empty = made + STAGES;  // B's planes are made; all of the stage is read
    bool* const last = reinterpret_cast<bool*>(empty + STAGES);
    if (threadIdx.x == 0) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(landed + stage, 1);
            mbarrier_init(made + stage, 4);  // a lane of each of the splitter's warps
            mbarrier_init(empty + stage, CONSUMERS * 4);
        }
        mbarrier_init_fence();
        prefetch_tensor_map(a_map);
        prefetch_tensor_map(b_map);
    }
    __syncthreads();

    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN), tiles = tiles_m * tiles_n, slices = ceil_div(K, DEPTH);
    const Runs runs{int64_t(batches * tiles - whole_tiles) * slices, sharers};
    const SharedTiles<CONSUMERS> walk{whole_tiles, slices, runs, parts, counters};
    const int role = threadIdx.x / 128;  // a consumer, or the splitter, or the producer
    Ring<STAGES> ring;
    if (role == CONSUMERS + 1) {
        give_up_registers<Of::PRODUCER>();
        if (threadIdx.x % 128 >= 32 || !elect_lane()) return;
        wait_for_earlier_kernels();
        walk.for_pieces([&](const Piece& piece) {
            const TileIndex tile = rasterize(piece.tile % tiles, tiles_m, tiles_n, group);
            const int batch = piece.tile / tiles;
            const int a_batch = stride.a.batch == 0 ? 0 : batch, b_batch = stride.b.batch == 0 ? 0 : batch;
#pragma unroll 1
            for (int slice = piece.first; slice < piece.first + piece.count; ++slice) {
                mbarrier_wait(empty + ring.stage, ring.parity ^ 1);
                mbarrier_arrive_expect(landed + ring.stage, ASlice::BYTES + BSlice::BYTES);
                const int k = slice * DEPTH;
                ASlice::copy(a_slices + ring.stage * ASlice::BYTES, a_map, landed + ring.stage, tile.m * BM, k, a_batch);
                BSlice::copy(b_slices + ring.stage * BSlice::BYTES, b_map, landed + ring.stage, tile.n * BN, k, b_batch);
                ring.advance();
            }
        });
    } else if (role == CONSUMERS) {
        give_up_registers<Of::SPLITTER>();
        walk.for_pieces([&](const Piece& piece) {
#pragma unroll 1
            for (int slice = 0; slice < piece.count; ++slice) {
                mbarrier_wait(landed + ring.stage, ring.parity);
                const int at = ring.stage * BSlice::BYTES;
                make_planes<BN, B_K_MAJOR>(b_slices + at, low_planes + at, RowsOfA<A_K_MAJOR>::k_of);
                tma_store_fence();  // wgmma reads what these stores have written
                __syncwarp();
                if (threadIdx.x % 32 == 0) mbarrier_arrive(made + ring.stage);
                ring.advance();
            }
        });
    } else {
        take_registers<Of::CONSUMER>();
        wait_for_earlier_kernels();
        // Fragments are loaded while those before are multiplied, and where registers have room, split as well
        constexpr bool SPLITS_AHEAD = BN == 64;
        constexpr int AT_ONCE = Of::CONSUMER - 3 * TILES * 4 < 72 ? 1 : 2, GROUPS = STEPS / AT_ONCE;  // steps in a group
        constexpr int SETS = SPLITS_AHEAD ? 2 : 1;
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32, first_row = role * 64 + warp * 16;
        const RowsOfA<A_K_MAJOR> rows{first_row + lane / 4};
        const uint64_t b_first = wgmma_descriptor(shared_address(b_slices), BLOCK_BYTES);
        const uint64_t low_first = wgmma_descriptor(shared_address(low_planes), BLOCK_BYTES);
        walk.for_pieces([&](const Piece& piece) {
            LaneSums<float> sum[1][1][TILES] = {}, corrections[1][1][TILES] = {};
            PlanesOfA<AT_ONCE> planes[SETS];
            const auto prepare = [&](int group) {
                PlanesOfA<AT_ONCE>& next = planes[group % SETS];
                if (group % GROUPS == 0) mbarrier_wait(landed + ring.stage, ring.parity);
                next.load(rows, a_slices + ring.stage * ASlice::BYTES, group % GROUPS * AT_ONCE);
                if constexpr (SPLITS_AHEAD) next.split();
            };
            if (piece.count > 0) prepare(0);
#pragma unroll 1
            for (int slice = 0; slice < piece.count; ++slice) {
                LaneSums<float> own[TILES];  // of the slice
                const uint64_t b = b_first + ring.stage * (BSlice::BYTES >> 4), low_b = low_first + ring.stage * (BSlice::BYTES >> 4);
                const int stage = ring.stage;
                mbarrier_wait(made + stage, ring.parity);
#pragma unroll
                for (int group = 0; group < GROUPS; ++group) {
                    PlanesOfA<AT_ONCE>& these = planes[group % SETS];
                    if constexpr (!SPLITS_AHEAD) these.split();
                    wgmma_fence();
                    these.multiply(own, corrections[0][0], b, low_b, group * AT_ONCE);
                    wgmma_commit();
                    if (group + 1 == GROUPS) ring.advance();
                    if (group + 1 < GROUPS || slice + 1 < piece.count) prepare(group + 1);
                    wgmma_wait<0>();
                }
                if (lane == 0) mbarrier_arrive(empty + stage);
                wgmma_results(own);
#pragma unroll
                for (int i = 0; i < TILES * 4; ++i) sum[0][0][i / 4].x[i % 4] += own[i / 4].x[i % 4];
            }
            wgmma_results(corrections[0][0]);
            correct<Planes<float>>(sum[0], corrections[0]);
            const TileIndex tile = rasterize(piece.tile % tiles, tiles_m, tiles_n, group);
            if (!walk.add_others(sum, piece, M - tile.m * BM - role * 64, last)) return;
            const Epilogue<float, float> epilogue(c, bias, out, alpha, beta, activation, stride, piece.tile / tiles);
            store_tile(sum[0], epilogue, tile.m * BM + first_row, tile.n * BN, M, N);
        });
    }
}

}  // namespace matmul
