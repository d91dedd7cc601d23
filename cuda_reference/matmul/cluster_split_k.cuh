// Matrix product on Hopper, split-K in a cluster (TMA, wgmma, distributed shared memory): its blocks share a tile, each its range
// of K.
//
// Few rows times large weights, or small matrices with a long K, have fewer tiles than SMs, so several blocks share a tile. In
// `split_k` they exchange their sums through L2: each writes all of its own, a counter says who is the last, and that block reads
// everybody's. It is one trip to L2 after the other, made by one block for all, some 5 us of a product that takes 10.
//
// Here the blocks are a cluster, which runs at the same time, and may read each other's shared memory. Each block writes its sums
// where slices were. When all have, each finishes some rows of the tile: it reads everybody's sums of these rows, adds them up in
// the order of K, the same bits every time, and stores the results. Its threads have 8 neighbouring ones each. There is no
// workspace and no counter, and nothing goes through L2. (Sums that threads wrote into the others' memory, 8 bytes at a time, took
// 10,000 clocks for 128 x 128 of them.)
//
// A cluster has at most 8 blocks (more are not portable), so there are 2 to 8 splits. The loop over slices is persistent's;
// a block has one piece of one tile. TMA writes zeros for rows outside of the operands and reads nothing: of 8 rows times the
// weights, what moves is the weights.
// Has no mirror: Triton has no distributed shared memory.
#pragma once
#include "persistent.cuh"

namespace matmul {

// Sums go to where slices were.
template <class Block> struct WithoutBoxes : Block {
    static constexpr bool HAS_BOXES = false;
};

// A walk: the piece of a tile that is this block's of its cluster.
template <class Sum, int BM, int BN, int CONSUMERS, int BLOCKS_OF_CLUSTER> struct SplitTiles {
    using Number = Scalar<Sum>;
    static constexpr int PITCH = BN + 8;  // numbers from a row to the next: lanes of a warp write to all banks
    static constexpr int SPLITS = BLOCKS_OF_CLUSTER;
    static_assert(sizeof(Number) == 4, "words of 4 bytes");
    int slices;  // of a tile

    template <int CLUSTER> __device__ __forceinline__ Piece first() const {
        const int split = blockIdx.x % SPLITS, first = int(int64_t(slices) * split / SPLITS);
        return {int(blockIdx.x / SPLITS), first, int(int64_t(slices) * (split + 1) / SPLITS) - first};
    }
    template <int CLUSTER, class Compute> __device__ __forceinline__ void for_pieces(const Compute& compute) const {
        compute(first<CLUSTER>());
    }

    // Writes the sums of a warpgroup's rows, the first of which is first_row of the tile, to `memory`, which has room for a tile;
    // adds up and stores the rows of this block.
    template <int BLOCKS, int TILES, class Out>
    __device__ __forceinline__ void share(LaneSums<Sum> (&sum)[BLOCKS][1][TILES], const Epilogue<Number, Out>& epilogue,
                                          unsigned char* memory, int tile_row, int first_row, int tile_col, int M, int N) const {
        const int split = blockIdx.x % SPLITS, warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
        const int rows = min(BM, M - tile_row), each = ceil_div(rows, SPLITS), own = min(max(rows - split * each, 0), each);
        Number* const numbers = reinterpret_cast<Number*>(memory);
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m) {
            wgmma_results(sum[m][0]);
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int row = first_row + m * 64 + warp * 16 + half * 8 + lane / 4;
                if (row >= rows) continue;
                Number* const to = numbers + row * PITCH + lane % 4 * 2;
#pragma unroll
                for (int n = 0; n < TILES; ++n) {
                    __align__(8) const Number pair[2] = {widen(sum[m][0][n].at(half * 2)), widen(sum[m][0][n].at(half * 2 + 1))};
                    *reinterpret_cast<uint2*>(to + n * 8) = reinterpret_cast<const uint2&>(pair);
                }
            }
        }
        __syncwarp();
        cluster_exchange();
        constexpr int RUNS = BN / 8;  // of a row
        for (int i = threadIdx.x; i < own * RUNS; i += CONSUMERS * 128) {
            const int row = split * each + i / RUNS, col = i % RUNS * 8;
            finish(numbers + row * PITCH + col, epilogue, tile_row + row, tile_col + col, M, N);
        }
    }

    // 8 neighbouring results of a row: the sum of what is there in each block.
    template <class Out>
    __device__ __forceinline__ static void finish(const Number* numbers, const Epilogue<Number, Out>& epilogue, int row, int col,
                                                  int M, int N) {
        Number results[8] = {};
#pragma unroll
        for (int split = 0; split < SPLITS; ++split) {
            const uint4* const words = reinterpret_cast<const uint4*>(in_block(numbers, split));
#pragma unroll
            for (int i = 0; i < 8; i += 4) {
                const uint4 four = words[i / 4];
#pragma unroll
                for (int j = 0; j < 4; ++j) results[i + j] += reinterpret_cast<const Number(&)[4]>(four)[j];
            }
        }
        const auto for_all = [&](const auto& change) {
#pragma unroll
            for (int i = 0; i < 8; ++i) change(results[i], 0, i);
        };
        for_all([&](Number& result, int, int) { result = epilogue.scaled(result); });
        epilogue.finish(for_all, row, col, M, N);
        constexpr int COUNT = 16 / sizeof(Out);  // stored at once
#pragma unroll
        for (int i = 0; i < 8; i += COUNT) {
            __align__(16) Out run[COUNT];
#pragma unroll
            for (int j = 0; j < COUNT; ++j) convert(results[i + j], run[j]);
            store_run(run, epilogue.out, row, col + i, M, N, epilogue.stride.out.row, epilogue.stride.out.col);
        }
    }
};

template <class T, class Out, class Sum, int BM, int BN, int CONSUMERS, int STAGES, int SPLIT_K, bool A_K_MAJOR, bool B_K_MAJOR,
          bool PROMOTES, Scales SCALES, bool SCALED>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128, 1) __cluster_dims__(SPLIT_K, 1, 1)
cluster_split_k(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
                const __grid_constant__ CUtensorMap out_map, const Out* __restrict__ c, const Out* __restrict__ bias,
                Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
                int batches, int group, const float* __restrict__ scale_a, const float* __restrict__ scale_b,
                ScaleStrides scale_stride) {
    static_assert(4 * BM * (BN + 8) <= STAGES * SLICE * (BM + BN), "sums go where slices were");
    using Block = WithoutBoxes<BlockOf<T, Out, Sum, BM, BN, CONSUMERS, STAGES, 1, 1, false, A_K_MAJOR, B_K_MAJOR, PROMOTES, SCALES,
                                       SCALED, false>>;
    multiply_tiles<Block>(
        {a_map, b_map, out_map, nullptr, c, bias, out, M, N, K, alpha, beta, activation, stride, batches, group, scale_a, scale_b,
         scale_stride},
        [](int, int slices) { return SplitTiles<Sum, BM, BN, CONSUMERS, SPLIT_K>{slices}; });
}

}  // namespace matmul
