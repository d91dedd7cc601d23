// How a row is read 128 bits at a time: what the designs from `vectorized` on share.
//
// Any contiguous row has a first 16-byte boundary. What lies before it, and after the last whole vector, is read element by
// element, less than a vector each; so no address or pitch is refused, and nothing outside the row is read. x, from the same
// element on, is read by vectors where its own address allows, which is asked once a row.
#pragma once
#include <cstring>

#include "../common/vector.cuh"
#include "common.cuh"

namespace gemv {

template <class T> constexpr int FULL = 16 / sizeof(T);  // elements of a vector

// sum + the inner product of one vector of A with as many elements of x.
template <class A, bool X_VECTOR, class X>
__device__ __forceinline__ float multiply_add(float sum, const uint4& quad, const X* x, int64_t stride_x) {
    A of_a[FULL<A>];
    X of_x[FULL<A>];
    std::memcpy(of_a, &quad, sizeof quad);
    if (X_VECTOR) {
        static_assert(sizeof(X) >= sizeof(A), "a vector's worth of x is whole vectors");
#pragma unroll
        for (int i = 0; i < FULL<A> / FULL<X>; ++i) {
            const uint4 part = reinterpret_cast<const uint4*>(x)[i];
            std::memcpy(of_x + i * FULL<X>, &part, sizeof part);
        }
    } else {
#pragma unroll
        for (int i = 0; i < FULL<A>; ++i) of_x[i] = x[i * stride_x];
    }
#pragma unroll
    for (int i = 0; i < FULL<A>; ++i) sum += float(of_a[i]) * float(of_x[i]);
    return sum;
}

// Vectors first, first + step, ... of an aligned row: the UNROLL loads of a round are independent, and all under way before
// the first is used.
template <int UNROLL, bool X_VECTOR, class A, class X>
__device__ __forceinline__ float sum_of_vectors(const A* a, const X* x, int64_t stride_x, int vectors, int first, int step) {
    float sum = 0.0f;
    for (int i = first; i < vectors; i += UNROLL * step) {
        uint4 quads[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int at = i + u * step;
            quads[u] = at < vectors ? reinterpret_cast<const uint4*>(a)[at] : make_uint4(0, 0, 0, 0);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int at = i + u * step;
            if (at < vectors) sum = multiply_add<A, X_VECTOR>(sum, quads[u], x + at * FULL<A> * stride_x, stride_x);
        }
    }
    return sum;
}

// One thread's share of a row's inner product, as one of `step` threads, of which it is number `first`.
template <int UNROLL, class A, class X>
__device__ __forceinline__ float row_sum(const A* a, int64_t stride_a, const X* x, int64_t stride_x, int N, int first,
                                         int step) {
    if (stride_a != 1) return scalar_sum(a, stride_a, x, stride_x, N, first, step);
    const int head = min(N, int(-reinterpret_cast<uintptr_t>(a) % 16 / sizeof(A)));
    const int vectors = (N - head) / FULL<A>, tail = head + vectors * FULL<A>;
    const A* a_body = a + head;
    const X* x_body = x + head * stride_x;
    float sum = stride_x == 1 && is_aligned16(x_body)
                    ? sum_of_vectors<UNROLL, true>(a_body, x_body, 1, vectors, first, step)
                    : sum_of_vectors<UNROLL, false>(a_body, x_body, stride_x, vectors, first, step);
    for (int n = first; n < head; n += step) sum += float(a[n]) * float(x[n * stride_x]);
    for (int n = tail + first; n < N; n += step) sum += float(a[n]) * float(x[n * stride_x]);
    return sum;
}

}  // namespace gemv
