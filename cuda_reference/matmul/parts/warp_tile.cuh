// A warp tile in registers: the fragments of its operands, and their products.
#pragma once
#include "../../common/mma_sync.cuh"
#include "lane_sums.cuh"
#include "lane_tile.cuh"
#include "swizzled_tile.cuh"

namespace matmul {

template <class ATile, class BTile, int WM, int WN> struct Fragments {
    using Word = std::conditional_t<std::is_same_v<typename ATile::Element, double>, double, unsigned>;
    Word a[WM / 16][4], b[WN / 16][4];

    template <class T> __device__ __forceinline__ void load(const T* a_tile, const T* b_tile, int a_place, int b_place, int k) {
#pragma unroll
        for (int m = 0; m < WM / 16; ++m) ATile::load(a[m], a_tile, a_place, m, k);
#pragma unroll
        for (int n = 0; n < WN / 16; ++n) BTile::load(b[n], b_tile, b_place, n, k);
    }

    __device__ __forceinline__ void to_tf32() {
#pragma unroll
        for (int i = 0; i < 4; ++i) {
#pragma unroll
            for (int m = 0; m < WM / 16; ++m) a[m][i] = round_to_tf32(a[m][i]);
#pragma unroll
            for (int n = 0; n < WN / 16; ++n) b[n][i] = round_to_tf32(b[n][i]);
        }
    }
};

// sum += A B for one step, from the fragments of A and B.
template <class T, class Sum, class Word, int MS, int NS>
__device__ __forceinline__ void multiply_add(LaneSums<Sum> (&sum)[MS][NS], const Word (&a)[MS][4], const Word (&b)[NS / 2][4]) {
#pragma unroll
    for (int m = 0; m < MS; ++m)
#pragma unroll
        for (int n = 0; n < NS; ++n) mma_sync<T>(sum[m][n].x, a[m], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
}

}  // namespace matmul
