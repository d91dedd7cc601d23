// FP32 matrix product on tensor cores, fused planes (cp.async, mma.sync): `planes` without its copies. Warps split what they load.
//
// `planes` first splits both operands in memory: two kernels, which read 4 bytes of each element and write 8 (6 in bf16), which the
// product then reads. Where a product reads its operands once or twice, that is most of its time: 21312 x 64 times 64 x 32 moves
// 8.2 MB, and 30 MB in three launches of `planes`. Here slices are FP32 as they lie, along K or across it, and come through shared
// memory as in `pipelined`. Each warp splits the fragments that it has loaded, in registers, and multiplies them there.
//
// The price: a number is split by every warp that reads it, once per tile, in 6 instructions on CUDA cores for 2 planes. A warp
// tile of 32 x 32 splits 16 numbers a lane per 8 of k, for 24 mma: both take about as long, so large products, whose operands are
// read by many blocks, remain for `planes`. Infinities, NaN and what rounds to infinity take twice as many, so a step is split as
// if it had none, and again where one of the warp's numbers shows that it has. Beside three planes registers hold 32 x 16 sums.
//
// An mma of 16-bit planes has 16 of k, two FP32 fragments of 8. Which k a register holds is the same for A and B, so each pair of
// registers along k gives a register of each plane as it is, without exchange between lanes.
//
// The sums are those of planes: plane 0 times plane 0 over BK products, then added by FADD; corrections apart. Splits of K, too.
// fp16x3 shifts rows by their largest element, which no slice knows, and is for `planes` alone.
// Mirrors tritonkernels/matmul/fused_planes.py.
#pragma once
#include "../common/add_splits.cuh"
#include "../common/index.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "parts/plane_products.cuh"
#include "parts/slices.cuh"

namespace matmul {

// A plane's fragments, for mma_sync<Plane>.
template <int WM, int WN> struct PlaneFragments {
    unsigned a[WM / 16][4], b[WN / 16][4];
};

// Word `word` of 16 rows of A (or columns of B) in each plane, from FP32 fragments: one of tf32, two neighbours along k of bf16.
// split(planes, number) makes the planes of a number.
template <class Plane, bool OF_A, int HALVES, class Split>
__device__ __forceinline__ void split_words(unsigned (&words)[Planes<Plane>::COUNT], const unsigned* const (&whole)[HALVES],
                                            int word, const Split& split) {
    constexpr int COUNT = Planes<Plane>::COUNT;
    Plane parts[COUNT];
    if constexpr (HALVES == 1) {
        split(parts, __uint_as_float(whole[0][word]));
#pragma unroll
        for (int i = 0; i < COUNT; ++i) words[i] = __float_as_uint(parts[i]);
    } else {
        // mma_sync.cuh: a word of A has the row half word % 2 and the k half word / 2, one of B the column half and the k half
        const unsigned* const half = whole[OF_A ? word / 2 : word % 2];
        const int first = OF_A ? word % 2 : word / 2 * 2;
        const float numbers[2] = {__uint_as_float(half[first]), __uint_as_float(half[first + (OF_A ? 2 : 1)])};
        __align__(4) Plane pairs[COUNT][2];
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            split(parts, numbers[j]);
#pragma unroll
            for (int i = 0; i < COUNT; ++i) pairs[i][j] = parts[i];
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i) words[i] = reinterpret_cast<const unsigned&>(pairs[i]);
    }
}

// The planes of a step's fragments.
template <class Plane, class Whole, int WM, int WN, int COUNT, int HALVES, class Split>
__device__ __forceinline__ void split_fragments(PlaneFragments<WM, WN> (&planes)[COUNT], const Whole (&whole)[HALVES],
                                                const Split& split) {
    const auto split_all = [&](auto of_a, auto numbers_of, auto words_of, int fragments) {
#pragma unroll
        for (int n = 0; n < fragments; ++n)
#pragma unroll
            for (int word = 0; word < 4; ++word) {
                const unsigned* numbers[HALVES];
#pragma unroll
                for (int half = 0; half < HALVES; ++half) numbers[half] = numbers_of(whole[half])[n];
                unsigned words[COUNT];
                split_words<Plane, of_a.value>(words, numbers, word, split);
#pragma unroll
                for (int i = 0; i < COUNT; ++i) words_of(planes[i])[n][word] = words[i];
            }
    };
    const auto a = [](auto& fragments) -> auto& { return fragments.a; };
    const auto b = [](auto& fragments) -> auto& { return fragments.b; };
    split_all(std::true_type(), a, a, WM / 16);
    split_all(std::false_type(), b, b, WN / 16);
}

// As all numbers of the step were ordinary. Where a lane of the warp has another one, all are split again, with care.
template <class Plane, class Whole, int WM, int WN, int COUNT, int HALVES>
__device__ __forceinline__ void split_step(PlaneFragments<WM, WN> (&planes)[COUNT], const Whole (&whole)[HALVES]) {
    float left = 0;  // a sum that is not finite if one of its numbers is not
    split_fragments<Plane>(planes, whole, [&](Plane(&parts)[COUNT], float number) { left += split_ordinary(parts, number); });
    if (__any_sync(0xffffffffu, !(fabsf(left) < INFINITY)))
        split_fragments<Plane>(planes, whole, [](Plane(&parts)[COUNT], float number) { split_number(parts, number, number); });
}

// A block of gridDim.y takes `split_size` of K, whole slices, of which none is empty.
template <class Plane, int DEPTH, int BM, int BN, int BK, int WM, int WN, int STAGES, bool A_K_MAJOR, bool B_K_MAJOR,
          int A_PIECE, int B_PIECE>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32)
fused_planes(const float* __restrict__ a, const float* __restrict__ b, const float* __restrict__ c,
             const float* __restrict__ bias, float* __restrict__ out, float* partial, int* counters, int M, int N, int K,
             float alpha, float beta, int activation, Strides stride, int group, int split_size) {
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    static_assert((WM & (WM - 1)) == 0 && (WN & (WN - 1)) == 0, "SwizzledTile::load adds by XOR");
    static_assert(BK >= 32 && BK <= 64, "numerics.SLICE: what is added up before it is added to an FP32 sum");
    constexpr int THREADS = BM / WM * (BN / WN) * 32, HALVES = sizeof(float) / sizeof(Plane), STEPS = BK / 8 / HALVES;
    using ATile = MmaTile<float, true, BM, BK, A_K_MAJOR, A_PIECE>;
    using BTile = MmaTile<float, false, BN, BK, B_K_MAJOR, B_PIECE>;
    const Place tile = place_of(blockIdx.x, ceil_div(M, BM), ceil_div(N, BN), group);
    const int batch = tile.matrix, first_row = tile.m * BM, first_col = tile.n * BN, warp = threadIdx.x / 32;
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;  // of the warp tile in the block tile
    const int a_place = ATile::fragment(row), b_place = BTile::fragment(col);
    const int first_k = blockIdx.y * split_size;
    wait_for_earlier_kernels();

    Slices<ATile, BTile, 1, STAGES, STEPS, THREADS> slices(
        {a + batch * stride.a.batch + first_k * stride.a.col, first_row, M, stride.a.row, stride.a.col, 0},
        {b + batch * stride.b.batch + first_k * stride.b.row, first_col, N, stride.b.col, stride.b.row, 0});
    using Whole = Fragments<ATile, BTile, WM, WN>[HALVES];
    LaneSums<float> main[WM / 16][WN / 8] = {}, corrections[WM / 16][WN / 8] = {}, slice_sum[WM / 16][WN / 8] = {};
    const auto load = [&](Whole& fragments, int stage, int step) {
#pragma unroll
        for (int half = 0; half < HALVES; ++half)
            fragments[half].load(slices.a_tile(stage, 0), slices.b_tile(stage, 0), a_place, b_place, step * HALVES + half);
    };
    const auto multiply = [&](const Whole& fragments, int step) {
        PlaneFragments<WM, WN> planes[Planes<Plane>::COUNT];
        split_step<Plane>(planes, fragments);
        multiply_planes<Plane, DEPTH>(slice_sum, corrections, planes);
        if (step == STEPS - 1) add_slice(main, slice_sum);
    };
    const int length = min(K - first_k, split_size);
    if constexpr (HALVES == 1) {
        Whole fragments[2];
        slices.walk(
            length, [&](int which, int stage, int step) { load(fragments[which], stage, step); },
            [&](int which, int step) { multiply(fragments[which], step); });
    } else {  // registers have no room for a second set beside three planes
        slices.walk_in_place(length, [&](int stage, int step) {
            Whole fragments;
            load(fragments, stage, step);
            multiply(fragments, step);
        });
    }

    correct<Planes<Plane>>(main, corrections);
    if (!add_splits<THREADS, 4, 64>(main, partial, counters)) return;
    const Epilogue<float, float> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
    store_tile(main, epilogue, first_row + row, first_col + col, M, N);
}

}  // namespace matmul
