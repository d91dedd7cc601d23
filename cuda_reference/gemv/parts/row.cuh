// Shared by all designs of GEMV. A is (batch, M, N), x (batch, N), y and out (batch, M), scale (M,); float, __half or
// __nv_bfloat16, A also int8_t, with products and sums in fp32; or all double. The rows of a batch are numbered through:
// batch * M of them.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "../../common/index.cuh"
#include "../../common/reduce.cuh"
#include "../../common/structs.cuh"

namespace gemv {

// What the products with an x of this type are added up in.
template <class X> using Sum = std::conditional_t<std::is_same<X, double>::value, double, float>;

struct Strides {
    MatricesStrides a;
    VectorsStrides x, y;
    VectorStrides scale;
    VectorsStrides out;
};

struct Row {
    int batch, m;
    __device__ __forceinline__ Row(int row, int M) : batch(row < M ? 0 : row / M), m(row - batch * M) {}  // division is slow
    __device__ __forceinline__ Row(int batch, int m, int) : batch(batch), m(m) {}

    // This row of A, and the x that it is multiplied by.
    template <class A> __device__ __forceinline__ const A* of(const A* a, const MatricesStrides& stride) const {
        return a + batch * stride.batch + m * stride.row;
    }
    template <class X> __device__ __forceinline__ const X* of(const X* x, const VectorsStrides& stride) const {
        return x + batch * stride.batch;
    }
};

// out = alpha * scale * sum + beta * y, rounded once. scale is null unless A is int8; y is null where beta is 0: never read.
template <class X>
__device__ __forceinline__ void store(Sum<X> sum, Row row, const X* y, const float* scale, X* out, Sum<X> alpha, Sum<X> beta,
                                      const Strides& stride) {
    if (scale != nullptr) sum *= scale[row.m * stride.scale.step];
    Sum<X> result = alpha * sum;
    if (y != nullptr) result += beta * Sum<X>(y[row.batch * stride.y.batch + row.m * stride.y.step]);
    out[row.batch * stride.out.batch + row.m * stride.out.step] = X(result);
}

// One thread's share of a row's inner product: elements first, first + step, ...
template <class A, class X>
__device__ __forceinline__ Sum<X> scalar_sum(const A* a, int64_t stride_a, const X* x, int64_t stride_x, int N, int first,
                                             int step) {
    Sum<X> sum = 0;
#pragma unroll 4
    for (int n = first; n < N; n += step) sum += Sum<X>(a[n * stride_a]) * Sum<X>(x[n * stride_x]);
    return sum;
}

}  // namespace gemv
