// GEMV: what all designs share. A is (batch, M, N), x (batch, N), y and out (batch, M), scale (M,); float, __half or
// __nv_bfloat16, A also int8_t. Products and sums are fp32. The rows of a batch are just more rows: batch * M of them.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../common/index.cuh"
#include "../common/reduce.cuh"

namespace gemv {

// In elements; 0 repeats one element. ab, xb, yb and ob step from one product of the batch to the next.
struct Strides {
    int64_t ab, am, an, xb, x, yb, y, s, ob, o;
};

struct Row {
    int batch, m;
    __device__ __forceinline__ Row(int row, int M) : batch(row < M ? 0 : row / M), m(row - batch * M) {}  // division is slow
    __device__ __forceinline__ Row(int batch, int m, int) : batch(batch), m(m) {}

    template <class A> __device__ __forceinline__ const A* of(const A* a, const Strides& stride) const {
        return a + batch * stride.ab + m * stride.am;
    }
};

// out = alpha * scale * sum + beta * y, rounded once. scale is null unless A is int8, y is null where beta is 0: never read.
template <class X>
__device__ __forceinline__ void store(float sum, Row row, const X* y, const float* scale, X* out, float alpha, float beta,
                                      const Strides& stride) {
    if (scale != nullptr) sum *= scale[row.m * stride.s];
    float result = alpha * sum;
    if (y != nullptr) result += beta * float(y[row.batch * stride.yb + row.m * stride.y]);
    out[row.batch * stride.ob + row.m * stride.o] = X(result);
}

// One thread's share of a row's inner product: elements first, first + step, ...
template <class A, class X>
__device__ __forceinline__ float scalar_sum(const A* a, int64_t stride_a, const X* x, int64_t stride_x, int N, int first,
                                            int step) {
    float sum = 0.0f;
#pragma unroll 4
    for (int n = first; n < N; n += step) sum += float(a[n * stride_a]) * float(x[n * stride_x]);
    return sum;
}

}  // namespace gemv
