// Matrix product on Hopper, persistent (TMA, wgmma): one thread makes the copy engine fill slices, warpgroups multiply them.
//
// In `pipelined` warps copy, load fragments and multiply in turns, and reach some 60 % of the tensor cores. Here three things
// change:
//
//   - wgmma reads both operands from shared memory: no fragments in registers, no ldmatrix. (But for B of tf32 that lies across
//     K, whose tiles are always SWAPPED: parts/transposed.cuh.)
//   - TMA computes the addresses, swizzles, rounds fp32 to tf32, and writes zeros for elements outside of the operands. One
//     thread of a producer warpgroup requests the slices, and the producer's registers go to the consumers (setmaxnreg).
//   - No barrier of the block in the loop: each stage has an mbarrier that says that its slice has landed, and one that says
//     that all consumers have read it.
//
// Per 16 of k two warpgroups read 2 (64 + 256) * 32 bytes = 20 KB of shared memory for a 128 x 256 tile. Its 2^19 multiply-adds
// take 256 clocks at 2048 per clock, in which 32 KB could be read.
//
// A block computes every gridDim.x-th tile, so that the slices of the next tile land while this one's result is written. The
// copy engine writes it too (OUT_BOXES), from two boxes of shared memory per warpgroup, one filled while the other is read, or
// from one where another stage has more use for the room: 16-bit results by stmatrix, 8 rows of 16 bytes at once. A result that TMA cannot write is stored from registers, 16 bytes per
// lane. What is added to a box comes from shared memory, too, where a tile's bias lands meanwhile (parts/tile_bias.cuh).
//
// The tensor cores add up products of fp8 in some 14 bits. Unless that is asked for, each slice has a sum of its own (PROMOTES),
// which CUDA cores add to one in fp32: there are two of them in turn, so that the wgmmas of a slice run while the sum of the one
// before is added. With the fp32 sums they fill the registers, so a warpgroup has 64 x 128 of the tile at most.
//
// Tiles that are too few for the SMs, or leave the last wave half empty, are split along K: blocks walk pieces of tiles, the sums
// of which the copy engine writes to a workspace as if each split were a matrix of the batch, and parts/add_parts.cuh adds them up. All
// pieces are equally long, since TMA reads zeros beyond K. Neighbours are at the same k at a time, so L2 has what they share.
//
// Three consumers have 64 x 192 sums each at most: 3000 x 3000 is 256 tiles of 192 x 192, two waves on 132 SMs, and 288 of
// 128 x 256, three. Two consumers have up to 64 x 320 (two wgmmas), as there are more registers for each.
//
// SWAPPED tiles are those of C^T = B^T A^T, of which a consumer has 64 columns and all rows: 96, say, or 160 (parts/swapped.cuh).
// 1024 x 528 is 99 tiles of 96 x 64, one wave of 132 SMs, and 72 of 128 x 64 or 144 of 64 x 64.
//
// A CLUSTER of two blocks has neighbouring tiles, which need the same slices of one operand, the larger: along M those of B, or
// along N those of A (of tiles of 192, the other one: half of 192 rows is no whole boxes of 64). Each block requests half of them
// for both (multicast), and all of its other operand. So L2 sends a pair of 128 x 256 tiles 2 * 128 + 256 rows of 128 bytes a
// slice, not 2 * (128 + 256): a third less. A stage of either block is written by both: it is full when the bytes of both have
// landed, and empty when the consumers of both have read theirs.
//
// A CLUSTER of four has 2 x 2 tiles, each of which shares A with its neighbour along N, and B with that along M: half as many rows
// a slice as without. L2 sends a line of 128 bytes to an SM every 3 clocks, and two for 128 bytes of a row that begins within a
// sector of 32, as most of 5400 columns of bf16 do: a tile of 128 x 256 takes 1.9 * 384 lines, 2100 clocks, for products of 1024;
// with four it is 1060. But not all SMs are in such clusters (model.py).
//
// Glossary: BM x BN is the block tile, of which each of CONSUMERS warpgroups owns BM / CONSUMERS rows; a slice is 128 bytes of
// k, a step 32.
// Mirrors tritonkernels/matmul/persistent.py.
#pragma once
#include "../common/index.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "../common/runs.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/lane_sums.cuh"
#include "parts/out_boxes.cuh"
#include "parts/scales.cuh"
#include "parts/tile_bias.cuh"
#include "parts/tma_slices.cuh"
#include "parts/transposed.cuh"

namespace matmul {

// Registers of a thread: at first, and once consumers have taken the producer's. One consumer has enough at first. SUMS of a
// consumer's thread.
template <int CONSUMERS, int SUMS> struct Registers {
    static constexpr int AT_FIRST = 65536 / 128 / (CONSUMERS + 1) / 8 * 8;
    static constexpr bool ALL = SUMS > 160;  // the producer keeps the fewest that it runs with
    static constexpr int PRODUCER = CONSUMERS != 2 ? 32 : ALL ? 24 : 40, CONSUMER = CONSUMERS != 2 ? 160 : ALL ? 240 : 232;
    static constexpr int OF_A_BOX = ALL ? 48 : 64;
    static_assert(CONSUMERS <= 3 && (CONSUMERS == 1 || PRODUCER + CONSUMERS * CONSUMER == (CONSUMERS + 1) * AT_FIRST),
                  "what one gives up others take; if they want more, they wait for ever");
};

// What a block computes: every gridDim.x-th tile, whole, or a piece of each if K is split: those of all tiles' first `slices`, then
// of the next ones. A cluster counts as one block. Producers and consumers walk alike.
struct WholeTiles {
    static constexpr bool CUTS = false;
    static constexpr int SPLITS = 1;  // blocks of a cluster with a piece each of the same tile
    int tiles, slices;  // of all splits; of a piece

    template <int CLUSTER, class Compute> __device__ __forceinline__ void for_pieces(const Compute& compute) const {
        for (int i = blockIdx.x / CLUSTER; i < tiles; i += gridDim.x / CLUSTER) compute(Piece{i, 0, slices});
    }
};

// The blocks of a cluster: SHARE_A along N share slices of A, SHARE_B along M those of B.
template <int SHARE_A, int SHARE_B> struct ClusterOf {
    static constexpr int SIZE = SHARE_A * SHARE_B, SHARERS = SHARE_A + SHARE_B - 1;  // of a block, itself among them

    __device__ __forceinline__ static int rank() { return SIZE > 1 ? blockIdx.x % SIZE : 0; }
    __device__ __forceinline__ static int across() { return SHARE_A > 1 ? rank() % SHARE_A : 0; }
    __device__ __forceinline__ static int down() { return SHARE_B > 1 ? rank() / SHARE_A : 0; }

    // A bit for each block that has the same rows, or columns.
    __device__ __forceinline__ static unsigned sharers_of_a() { return ((1u << SHARE_A) - 1) << down() * SHARE_A; }
    __device__ __forceinline__ static unsigned sharers_of_b() { return ((1u << SIZE) - 1) / ((1u << SHARE_A) - 1) << across(); }

    // A warp has read a stage: to all blocks that write to it.
    __device__ __forceinline__ static void give_back(uint64_t* empty, int lane) {
        if constexpr (SIZE > 1) {
            if (lane < SIZE && (sharers_of_a() | sharers_of_b()) >> lane & 1) mbarrier_arrive_at(empty, lane);
        } else {
            if (lane == 0) mbarrier_arrive(empty);
        }
    }
};

// Bytes of a block's slices, the result's boxes, the bias of each consumer's columns, and barriers.
constexpr int block_bytes(int bm, int bn, int consumers, int stages, int boxes) {
    return stages * (SLICE * (bm + bn) + 16) + consumers * (boxes * BLOCK_BYTES + 4 * bn);
}

// Boxes of a consumer: two if they fit beside the stages.
template <int BM, int BN, int CONSUMERS, int STAGES>
constexpr int BOXES_THAT_FIT = block_bytes(BM, BN, CONSUMERS, STAGES, 2) <= 227 * 1024 ? 2 : 1;

// A step of 64 rows. Of more than 256 columns a second wgmma has the rest.
template <class T, bool LEFT_K_MAJOR, bool RIGHT_K_MAJOR, bool ADDS, class Sum, int TILES>
__device__ __forceinline__ void multiply_step(LaneSums<Sum> (&sum)[TILES], uint64_t left, uint64_t right) {
    constexpr int FIRST = TILES < 32 ? TILES : 32;
    wgmma<T, LEFT_K_MAJOR, RIGHT_K_MAJOR, ADDS>(reinterpret_cast<LaneSums<Sum>(&)[FIRST]>(sum), left, right);
    if constexpr (TILES > FIRST) {
        auto& others = reinterpret_cast<LaneSums<Sum>(&)[TILES - FIRST]>(sum[FIRST]);
        wgmma<T, LEFT_K_MAJOR, RIGHT_K_MAJOR, ADDS>(others, left, right + (FIRST / 8 * BLOCK_BYTES >> 4));
    }
}

// Adds the sums of a slice to those of all before it.
template <int BLOCKS, int TILES>
__device__ __forceinline__ void promote(LaneSums<float> (&sum)[BLOCKS][1][TILES], LaneSums<float> (&slice)[BLOCKS][1][TILES]) {
#pragma unroll
    for (int m = 0; m < BLOCKS; ++m) {
        wgmma_results(slice[m][0]);
#pragma unroll
        for (int i = 0; i < TILES * 4; ++i) sum[m][0][i / 4].x[i % 4] += slice[m][0][i / 4].x[i % 4];
    }
}

// SCALED: nothing follows alpha, as epilogue.cuh says. PROMOTES: tensor cores add up one slice at a time, as those of fp8 keep
// few bits. SCALES: those of fp8 (scales.cuh), which SWAPPED tiles have of a matrix only. walk_of(tiles, slices) makes a Walk, as
// WholeTiles is.
template <class T, class Out, class Sum, int BM, int BN, int CONSUMERS, int STAGES, int CLUSTER, int SHARE_A, bool SWAPPED,
          bool A_K_MAJOR, bool B_K_MAJOR, bool PROMOTES, Scales SCALES, bool SCALED, bool OUT_BOXES, class WalkOf>
__device__ __forceinline__ void
multiply_tiles(const CUtensorMap& a_map, const CUtensorMap& b_map, const CUtensorMap& out_map, const Out* __restrict__ c,
               const Out* __restrict__ bias, Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta,
               int activation, const Strides& stride, int batches, int group, const float* __restrict__ scale_a,
               const float* __restrict__ scale_b, const ScaleStrides& scale_stride, const WalkOf& walk_of) {
    static_assert((SWAPPED ? BN : BM) % (CONSUMERS * 64) == 0, "a wgmma has 64 rows");
    static_assert(!SWAPPED || (BN == CONSUMERS * 64 && BM % 8 == 0 && BM >= 32 && SCALES != ROW_SCALES), "a consumer has 64 columns");
    constexpr int BLOCKS = SWAPPED ? 1 : BM / CONSUMERS / 64;           // of 64 rows of a consumer's products
    constexpr int TILES = (SWAPPED ? BM : BN) / 8, STEPS = SLICE / 32;  // of 8 columns of them; of a slice
    constexpr int SUMS = BLOCKS * TILES * 4;                            // of a thread
    using Threads = Registers<CONSUMERS, SUMS>;
    static_assert(CONSUMERS == 1 || SUMS + Threads::OF_A_BOX <= Threads::CONSUMER, "sums, and what a box takes");
    static_assert(!PROMOTES || (SUMS <= 64 && CONSUMERS < 3), "three sets of sums must fit in registers");
    constexpr int SHARE_B = CLUSTER / SHARE_A;
    static_assert(SHARE_A * SHARE_B == CLUSTER && CLUSTER <= 8, "a cluster is SHARE_B x SHARE_A blocks, of which each GPU takes 8");
    using Cluster = ClusterOf<SHARE_A, SHARE_B>;
    using ASlice = OperandSlice<T, BM, A_K_MAJOR>;
    using BSlice = OperandSlice<T, BN, B_K_MAJOR>;
    unsigned char* const a_slices = dynamic_shared<unsigned char>();  // STAGES of each
    unsigned char* const b_slices = a_slices + STAGES * ASlice::BYTES;
    unsigned char* const boxes = b_slices + STAGES * BSlice::BYTES;  // of the result, or none
    using Walk = decltype(walk_of(0, 0));
    using Boxes = OutBoxes<Out, BOXES_THAT_FIT<BM, BN, CONSUMERS, STAGES>>;
    constexpr int BOXES_BYTES = OUT_BOXES ? CONSUMERS * Boxes::COUNT * BLOCK_BYTES : 0;
    Scalar<Sum>* const biases = reinterpret_cast<Scalar<Sum>*>(boxes + BOXES_BYTES);  // of each consumer's tile
    uint64_t* const full = reinterpret_cast<uint64_t*>(biases + (OUT_BOXES ? CONSUMERS * BN : 0));
    uint64_t *const empty = full + STAGES, *const more = empty + STAGES;  // what a walk needs
    if (threadIdx.x == 0) {
#pragma unroll
        for (int stage = 0; stage < STAGES; ++stage) {
            mbarrier_init(full + stage, 1);
            mbarrier_init(empty + stage, Cluster::SHARERS * CONSUMERS * 4);  // one lane of each warp that reads
        }
        mbarrier_init_fence();
        prefetch_tensor_map(a_map);  // while the kernel before this one ends
        prefetch_tensor_map(b_map);
        if constexpr (OUT_BOXES) prefetch_tensor_map(out_map);
    }
    __syncthreads();
    if constexpr (CLUSTER > 1) cluster_barrier();  // the other blocks' barriers are ready, too

    // These are tiles of clusters: SHARE_B x SHARE_A of block tiles, of which some may lie outside of the result. They are computed
    // of zeros and not written.
    const int tiles_m = ceil_div(M, BM * SHARE_B), tiles_n = ceil_div(N, BN * SHARE_A), tiles = tiles_m * tiles_n;
    const auto walk = walk_of(batches * tiles, ceil_div(K, ASlice::DEPTH));
    const auto place = [&](int i) {
        const TileIndex tile = rasterize(i % tiles, tiles_m, tiles_n, group);
        return TileIndex{tile.m * SHARE_B + Cluster::down(), tile.n * SHARE_A + Cluster::across()};
    };
    Ring<STAGES> ring;
    if (threadIdx.x >= CONSUMERS * 128) {
        if constexpr (CONSUMERS > 1) give_up_registers<Threads::PRODUCER>();
        const auto request = [&](const Piece& piece) {
            const TileIndex tile = place(piece.tile);
            const int page = piece.tile / tiles, batch = page % batches;  // the batch again for each split of K
            const int a_batch = stride.a.batch == 0 ? 0 : batch, b_batch = stride.b.batch == 0 ? 0 : batch;
            const int first = piece.first + page / batches * walk.slices;
            wait_for_earlier_kernels();  // here, so that the first request follows at once; later it has nothing to wait for
#pragma unroll 1
            for (int slice = first; slice < first + piece.count; ++slice) {
                uint64_t* const landed = full + ring.stage;
                mbarrier_wait(empty + ring.stage, ring.parity ^ 1);  // of the previous round; in the first it returns at once
                mbarrier_arrive_expect(landed, ASlice::BYTES + BSlice::BYTES);
                const int k = slice * ASlice::DEPTH;
                ASlice::template copy<SHARE_A>(a_slices + ring.stage * ASlice::BYTES, a_map, landed, tile.m * BM, k, a_batch,
                                               Cluster::across(), Cluster::sharers_of_a());
                BSlice::template copy<SHARE_B>(b_slices + ring.stage * BSlice::BYTES, b_map, landed, tile.n * BN, k, b_batch,
                                               Cluster::down(), Cluster::sharers_of_b());
                ring.advance();
            }
        };
        if (threadIdx.x == CONSUMERS * 128) {
            walk.template for_pieces<CLUSTER>(request);
            if constexpr (CLUSTER > 1) {  // other blocks arrive at this one's barriers: it must not end before
#pragma unroll 1
                for (int stage = 0; stage < STAGES; ++stage) {
                    mbarrier_wait(empty + ring.stage, ring.parity ^ 1);
                    ring.advance();
                }
            }
        }
        if constexpr (Walk::SPLITS > 1) {  // all threads of the cluster are to arrive
            __syncwarp();
            cluster_exchange();
        }
    } else if constexpr (sizeof(T) == 4 && !B_K_MAJOR) {
        static_assert(SWAPPED && A_K_MAJOR && Walk::SPLITS == 1, "of tf32 only B may lie across K");
        if constexpr (CONSUMERS > 1) take_registers<Threads::CONSUMER>();
        wait_for_earlier_kernels();
        const auto give_back = [&](int stage) { Cluster::give_back(empty + stage, threadIdx.x % 32); };
        Boxes out_boxes{out_map, boxes + threadIdx.x / 128 * Boxes::COUNT * BLOCK_BYTES, threadIdx.x % 128 == 0};
        TransposedTile<BM, BN> own{a_slices, b_slices};
        walk.template for_pieces<CLUSTER>([&](const Piece& piece) {
            const int batch = piece.tile / tiles;
            const TileIndex tile = place(piece.tile);
            const int row = tile.m * BM, col = tile.n * BN + threadIdx.x / 128 * 64;
            SwappedResult<Boxes, Out, Sum, BM, LanesInPairs> result{out_boxes};
            if constexpr (!SCALED) result.load_bias(bias, stride.bias, col, N);
            LaneSums<float> sum[1][1][BM / 8] = {};  // g++ 12 crashes on TILES here
            own.multiply(sum, piece.count, ring, full, give_back);
            if constexpr (Walk::CUTS) {
                auto& in_blocks = reinterpret_cast<LaneSums<float>(&)[BM / BN][1][BN / 8]>(sum);  // as many at once as elsewhere
                if (!walk.add_others(in_blocks, piece, BM, reinterpret_cast<bool*>(more))) return;
            }
            const auto epilogue = epilogue_of<Sum, SCALED>(c, bias, out, alpha, beta, activation, stride, batch);
            result.template store<SCALED, OUT_BOXES>(sum, epilogue, row, col, batch, M, N);
        });
        if (OUT_BOXES && out_boxes.asks) tma_store_wait<0>();  // as below
    } else {
        if constexpr (CONSUMERS > 1) take_registers<Threads::CONSUMER>();
        wait_for_earlier_kernels();
        const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
        const int first_row = SWAPPED ? 0 : threadIdx.x / 128 * (BM / CONSUMERS), first_col = SWAPPED ? threadIdx.x / 128 * 64 : 0;
        using Left = std::conditional_t<SWAPPED, BSlice, ASlice>;  // of which a consumer has BLOCKS of 64
        using Right = std::conditional_t<SWAPPED, ASlice, BSlice>;
        constexpr bool LEFT_K_MAJOR = SWAPPED ? B_K_MAJOR : A_K_MAJOR, RIGHT_K_MAJOR = SWAPPED ? A_K_MAJOR : B_K_MAJOR;
        const uint64_t of_a = wgmma_descriptor(shared_address(a_slices + first_row * SLICE), BLOCK_BYTES);
        const uint64_t of_b = wgmma_descriptor(shared_address(b_slices + first_col * SLICE), BLOCK_BYTES);
        const uint64_t first_left = SWAPPED ? of_b : of_a, first_right = SWAPPED ? of_a : of_b;
        Boxes out_boxes{out_map, boxes + threadIdx.x / 128 * Boxes::COUNT * BLOCK_BYTES, threadIdx.x % 128 == 0};
        const auto give_back = [&](int stage) { Cluster::give_back(empty + stage, lane); };
        walk.template for_pieces<CLUSTER>([&](const Piece& piece) {
            const int batch = piece.tile / tiles, slices = piece.count;
            TileScales<SCALES, BLOCKS, BN> scales;
            const auto load_scales = [&] {
                const TileIndex tile = place(piece.tile);
                scales.load(scale_a, scale_b, scale_stride, batch, tile.m * BM + first_row + warp * 16, tile.n * BN, M, N);
            };
            if constexpr (SCALED) load_scales();  // early: they arrive while slices are multiplied
            TileBias<Scalar<Sum>, Out, BN> tile_bias{biases + threadIdx.x / 128 * BN};
            const bool adds_bias = OUT_BOXES && !SWAPPED && !SCALED && bias != nullptr;
            if (adds_bias) tile_bias.load(bias, stride.bias, place(piece.tile).n * BN, N);
            SwappedResult<Boxes, Out, Sum, BM, LanesInOrder> swapped{out_boxes};
            if constexpr (SWAPPED && !SCALED) swapped.load_bias(bias, stride.bias, place(piece.tile).n * BN + first_col, N);
            LaneSums<Sum> sum[BLOCKS][1][TILES] = {};
            int last = 0;  // the stage that the wgmmas in flight read
            // Starts the products of a slice, and waits for those of the slice before
            const auto multiply = [&](LaneSums<Sum>(&into)[BLOCKS][1][TILES], int slice) {
                mbarrier_wait(full + ring.stage, ring.parity);
                const uint64_t left = first_left + ring.stage * (Left::BYTES >> 4);
                const uint64_t right = first_right + ring.stage * (Right::BYTES >> 4);
                wgmma_fence();
#pragma unroll
                for (int m = 0; m < BLOCKS; ++m)
                    multiply_step<T, LEFT_K_MAJOR, RIGHT_K_MAJOR, !PROMOTES>(into[m][0], left + (m * BLOCK_BYTES >> 4), right);
#pragma unroll
                for (int k = 1; k < STEPS; ++k)
#pragma unroll
                    for (int m = 0; m < BLOCKS; ++m)
                        multiply_step<T, LEFT_K_MAJOR, RIGHT_K_MAJOR, true>(
                            into[m][0], left + ((m * BLOCK_BYTES + k * Left::STEP) >> 4), right + (k * Right::STEP >> 4));
                wgmma_commit();
                wgmma_wait<1>();
                if (slice > 0) give_back(last);
                last = ring.stage;
                ring.advance();
            };
            if constexpr (!PROMOTES) {
#pragma unroll 1
                for (int slice = 0; slice < slices; ++slice) multiply(sum, slice);
                wgmma_wait<0>();
            } else if (slices > 0) {  // two slices a round: ptxas makes wgmmas wait where a branch is between them and their wait
                LaneSums<Sum> even[BLOCKS][1][TILES], odd[BLOCKS][1][TILES];
                multiply(even, 0);
                int slice = 1;
#pragma unroll 1
                for (; slice + 1 < slices; slice += 2) {
                    multiply(odd, slice);
                    promote(sum, even);
                    multiply(even, slice + 1);
                    promote(sum, odd);
                }
                if (slice < slices) {
                    multiply(odd, slice);
                    promote(sum, even);
                    wgmma_wait<0>();
                    promote(sum, odd);
                } else {
                    wgmma_wait<0>();
                    promote(sum, even);
                }
            }
            if (slices > 0) give_back(last);
            const TileIndex tile = place(piece.tile);
            const int row = tile.m * BM + first_row, col = tile.n * BN + first_col;
            if constexpr (Walk::CUTS)
                if (!walk.add_others(sum, piece, M - row, reinterpret_cast<bool*>(more))) return;
            if constexpr (!SCALED) load_scales();  // no earlier than addends, which want registers of their own
            scales.apply(sum);
            if constexpr (Walk::SPLITS > 1) {
                const auto epilogue =
                    epilogue_of<Scalar<Sum>, SCALED>(c, bias, out, scales.times(alpha), beta, activation, stride, batch);
                if (slices > 0) mbarrier_wait(empty + last, ring.parity ^ (ring.stage == 0));  // nobody reads slices any more
                return walk.share(sum, epilogue, a_slices, tile.m * BM, first_row, col, M, N);
            }
            const auto epilogue =
                epilogue_of<Sum, SCALED>(c, bias, out, scales.times(alpha), beta, activation, stride, batch);
            if constexpr (SWAPPED) {
                swapped.template store<SCALED, OUT_BOXES>(sum, epilogue, row, col, batch, M, N);
            } else if constexpr (OUT_BOXES) {
                constexpr int OF_A_BOX = Boxes::TILES, ACROSS = ceil_div(TILES, OF_A_BOX), BOXES = BLOCKS * ACROSS;
                if (adds_bias) tile_bias.share();
                const auto write = [&](auto everything, int box) {
                    constexpr bool EVERYTHING = decltype(everything)::value;
                    constexpr int AT_ONCE = !EVERYTHING && !Threads::ALL ? OF_A_BOX : CONSUMERS < 3 ? OF_A_BOX / 2 : 2;
                    const int box_tile = first_tile(box % ACROSS, OF_A_BOX, TILES);
                    const int box_row = row + box / ACROSS * 64, box_col = col + box_tile * 8;
                    const auto fill = [&](unsigned char* to) {
#pragma unroll 1
                        for (int first = 0; first < OF_A_BOX; first += AT_ONCE) {
                            Scalar<Sum> results[1][AT_ONCE][4];
                            scale<OF_A_BOX>(results, sum, (box * OF_A_BOX + first) / AT_ONCE, epilogue);
                            const auto all = [&](const auto& change) { for_all(results, change); };
                            if constexpr (EVERYTHING)
                                epilogue.add_c(all, box_row + warp * 16 + lane / 4, box_col + first * 8 + lane % 4 * 2, M, N);
                            if (adds_bias) tile_bias.add(results, box_tile + first);
                            if constexpr (EVERYTHING)
                                epilogue.activate_all(all);
                            else if (epilogue.activation == RELU)
                                all([](Scalar<Sum>& result, int, int) { result = activate(result, RELU); });
                            out_boxes.fill(to, results, first);
                        }
                    };
                    out_boxes.pass(fill, [&](const unsigned char* from) { tma_store(out_map, from, box_col, box_row, batch); });
                };
                // C and activations with exponentials are long code, which each call reads from memory: so that of a part of a
                // box, in a loop.
                if (SCALED || (epilogue.c == nullptr && epilogue.activation <= RELU)) {
#pragma unroll
                    for (int box = 0; box < BOXES; ++box) write(std::false_type(), box);
                } else {
#pragma unroll 1
                    for (int box = 0; box < BOXES; ++box) write(std::true_type(), box);
                }
            } else {
#pragma unroll
                for (int m = 0; m < BLOCKS; ++m) {
                    wgmma_results(sum[m][0]);
                    store_tile(sum[m], epilogue, row + m * 64 + warp * 16, col, M, N);
                }
            }
        });
        if (OUT_BOXES && out_boxes.asks) tma_store_wait<0>();  // the stores read shared memory, which ends with the block
    }
    if constexpr (Walk::SPLITS > 1) {  // which others read
        __syncwarp();
        cluster_barrier();
    }
}

// Blocks that an SM is to hold: two where their shared memory allows it, and sums and what follows leave the registers. Then
// those of the kernel after it need not wait for a block to end.
template <int BM, int BN, int CONSUMERS, int STAGES, bool PROMOTES, bool SCALED> constexpr int blocks_of_an_sm() {
    constexpr bool FIT = 2 * (block_bytes(BM, BN, CONSUMERS, STAGES, 2) + 1024) <= 228 * 1024;
    return CONSUMERS == 1 && !PROMOTES && SCALED && FIT ? 2 : 1;
}

template <class T, class Out, class Sum, int BM, int BN, int CONSUMERS, int STAGES, int CLUSTER, int SHARE_A, bool SWAPPED,
          bool A_K_MAJOR, bool B_K_MAJOR, bool PROMOTES, Scales SCALES, bool SCALED, bool OUT_BOXES>
__global__ void __launch_bounds__((CONSUMERS + 1) * 128, blocks_of_an_sm<BM, BN, CONSUMERS, STAGES, PROMOTES, SCALED>())
__cluster_dims__(CLUSTER, 1, 1)
persistent(const __grid_constant__ CUtensorMap a_map, const __grid_constant__ CUtensorMap b_map,
           const __grid_constant__ CUtensorMap out_map, const Out* __restrict__ c, const Out* __restrict__ bias,
           Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha, Scalar<Sum> beta, int activation, Strides stride,
           int batches, int group, const float* __restrict__ scale_a, const float* __restrict__ scale_b,
           ScaleStrides scale_stride, int splits) {
    multiply_tiles<T, Out, Sum, BM, BN, CONSUMERS, STAGES, CLUSTER, SHARE_A, SWAPPED, A_K_MAJOR, B_K_MAJOR, PROMOTES, SCALES,
                   SCALED, OUT_BOXES>(
        a_map, b_map, out_map, c, bias, out, M, N, K, alpha, beta, activation, stride, batches, group, scale_a, scale_b,
        scale_stride, [=](int tiles, int slices) { return WholeTiles{splits * tiles, ceil_div(slices, splits)}; });
}

}  // namespace matmul
