// Partial sums of the gradients with respect to weight and bias: many blocks share one sum, each with its range of positions,
// and a second kernel adds them up in a fixed order: the same bits every time. Mirrors tritonkernels/language/position_sums.py.
#pragma once
#include "../../common/overlap.cuh"
#include "common.cuh"

namespace conv2d {

// A position of the output, q fastest.
struct Position {
    int image, p, q;

    __device__ __forceinline__ Position(int64_t index, int P, int Q) {
        if (index <= UINT32_MAX)  // a 64-bit division takes a hundred instructions
            split(uint32_t(index), P, Q);
        else
            split(uint64_t(index), P, Q);
    }

    template <class Unsigned> __device__ __forceinline__ void split(Unsigned index, int P, int Q) {
        q = int(index % Unsigned(Q));
        index /= Unsigned(Q);
        p = int(index % Unsigned(P));
        image = int(index / Unsigned(P));
    }
};

// Adds `value` over the ROWS rows of a block of LANES x ROWS threads, lanes fastest, in order; the first row gets the sums. Every
// thread must call it.
template <int LANES, int ROWS, class S> __device__ __forceinline__ S sum_of_rows(S value) {
    __shared__ S of_thread[ROWS * LANES];
    of_thread[threadIdx.x] = value;
    __syncthreads();  // all rows have stored theirs
    if (threadIdx.x < LANES)
        for (int row = 1; row < ROWS; ++row) value += of_thread[row * LANES + threadIdx.x];
    return value;
}

// The gradient with respect to a weight, (K, C / groups, R, S), or to a bias, (K, 1, 1, 1).
struct FiltersShape {
    int k, c, r, s;
};

// out, of any strides, is the sum of `splits` contiguous ones; 32 of its elements a block of 32 x ROWS.
template <class T, int ROWS>
__global__ void __launch_bounds__(32 * ROWS)
add_splits(const Sum<T>* __restrict__ sums, T* __restrict__ out, int splits, FiltersShape shape, FiltersStrides stride) {
    wait_for_earlier_kernels();
    const int row = threadIdx.x / 32;
    const int64_t total = int64_t(shape.k) * shape.c * shape.r * shape.s;
    int64_t index = int64_t(blockIdx.x) * 32 + threadIdx.x % 32;
    Sum<T> sum(0);
    if (index < total)
#pragma unroll 4
        for (int split = row; split < splits; split += ROWS) sum += sums[split * total + index];
    sum = sum_of_rows<32, ROWS>(sum);
    if (row > 0 || index >= total) return;
    const int s = index % shape.s;
    index /= shape.s;
    const int r = index % shape.r;
    index /= shape.r;
    const int c = index % shape.c, k = index / shape.c;
    out[k * stride.k + c * stride.c + r * stride.r + s * stride.s] = T(sum);
}

}  // namespace conv2d
