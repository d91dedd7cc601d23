// Reads a row 128 bits at a time; shared by the designs from `vectorized` on.
//
// Any contiguous row has a first 16-byte boundary. The elements before it, and after the last whole vector, are read one by
// one, so that no address or pitch is refused and nothing outside the row is read. x, from the same element on, is read by
// vectors where its own address allows, which is checked once per row.
#pragma once
#include <cstring>

#include "../../common/cache_hint.cuh"
#include "../../common/vector.cuh"
#include "row.cuh"

namespace gemv {

template <class T> constexpr int FULL = 16 / sizeof(T);  // elements of a vector

template <class A> __device__ __forceinline__ void load_vector(A (&to)[FULL<A>], const A* a, const Loader& loader) {
    const uint4 quad = loader.load(a);
    std::memcpy(to, &quad, sizeof to);
}

// As many elements of x.
template <bool X_VECTOR, int COUNT, class X>
__device__ __forceinline__ void load_factors(X (&to)[COUNT], const X* x, int64_t stride_x) {
    if constexpr (X_VECTOR) {
        static_assert(COUNT % FULL<X> == 0, "a vector's worth of x is whole vectors");
#pragma unroll
        for (int i = 0; i < COUNT; i += FULL<X>) {
            const uint4 part = *reinterpret_cast<const uint4*>(x + i);
            std::memcpy(to + i, &part, sizeof part);
        }
    } else {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) to[i] = x[i * stride_x];
    }
}

// Vectors first, first + step, ... of an aligned row: the UNROLL loads of a round are independent, and all in flight before
// the first is used.
template <int UNROLL, bool X_VECTOR, class A, class X>
__device__ __forceinline__ Sum<X> sum_of_vectors(const A* a, const X* x, int64_t stride_x, int vectors, int first, int step,
                                                 const Loader& loader) {
    Sum<X> sum = 0;
    for (int i = first; i < vectors; i += UNROLL * step) {
        A of_a[UNROLL][FULL<A>];
        X of_x[UNROLL][FULL<A>];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int at = i + u * step;
            if (at < vectors) {
                load_vector(of_a[u], a + at * FULL<A>, loader);
                load_factors<X_VECTOR>(of_x[u], x + at * FULL<A> * stride_x, stride_x);
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            if (i + u * step < vectors)
#pragma unroll
                for (int j = 0; j < FULL<A>; ++j) sum += Sum<X>(of_a[u][j]) * Sum<X>(of_x[u][j]);
    }
    return sum;
}

// One thread's share of a row's inner product, as one of `step` threads, of which it is number `first`.
template <int UNROLL, class A, class X>
__device__ __forceinline__ Sum<X> row_sum(const A* a, int64_t stride_a, const X* x, int64_t stride_x, int N, int first,
                                          int step, const Loader& loader) {
    if (stride_a != 1) return scalar_sum(a, stride_a, x, stride_x, N, first, step);
    const int head = min(N, int(-reinterpret_cast<uintptr_t>(a) % 16 / sizeof(A)));
    const int vectors = (N - head) / FULL<A>, tail = head + vectors * FULL<A>;
    const A* a_body = a + head;
    const X* x_body = x + head * stride_x;
    Sum<X> sum = stride_x == 1 && is_aligned16(x_body)  // else x is many small loads, whose addresses take the registers
                     ? sum_of_vectors<UNROLL, true>(a_body, x_body, 1, vectors, first, step, loader)
                     : sum_of_vectors<2, false>(a_body, x_body, stride_x, vectors, first, step, loader);
    for (int n = first; n < head; n += step) sum += Sum<X>(a[n]) * Sum<X>(x[n * stride_x]);
    for (int n = tail + first; n < N; n += step) sum += Sum<X>(a[n]) * Sum<X>(x[n * stride_x]);
    return sum;
}

}  // namespace gemv
