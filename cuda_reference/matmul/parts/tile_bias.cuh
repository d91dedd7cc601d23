// The bias of a tile's columns, of which each warpgroup has its own copy in shared memory.
//
// A lane has two columns of every eight. From global memory each is a load with an address and an edge of its own: on an H100
// that took most of the time of products with a short K.
#pragma once
#include "../../common/index.cuh"
#include "epilogue.cuh"

namespace matmul {

template <class Number, class Out, int BN> struct TileBias {
    static constexpr int EACH = ceil_div(BN, 128);  // columns of a thread of the warpgroup
    Number* columns;
    Out loaded[EACH];

    // Early: they arrive while slices are multiplied.
    __device__ __forceinline__ void load(const Out* bias, const VectorStrides& stride, int first_col, int N) {
#pragma unroll
        for (int i = 0; i < EACH; ++i) {
            const int col = first_col + i * 128 + threadIdx.x % 128;
            loaded[i] = i * 128 + threadIdx.x % 128 < BN && col < N ? bias[col * stride.step] : Out();
        }
    }

    // Before a barrier of the warpgroup.
    __device__ __forceinline__ void share() const {
#pragma unroll
        for (int i = 0; i < EACH; ++i)
            if (const int col = i * 128 + threadIdx.x % 128; col < BN) columns[col] = widen(loaded[i]);
    }

    // To a lane's results of the tiles of 8 columns from the first on.
    template <int TILES> __device__ __forceinline__ void add(Number (&results)[1][TILES][4], int first) const {
#pragma unroll
        for (int n = 0; n < TILES; ++n) {
            struct alignas(2 * sizeof(Number)) Pair {
                Number of[2];
            };
            const Pair pair = *reinterpret_cast<const Pair*>(columns + (first + n) * 8 + threadIdx.x % 4 * 2);
#pragma unroll
            for (int i = 0; i < 4; ++i) results[0][n][i] += pair.of[i % 2];
        }
    }
};

}  // namespace matmul
