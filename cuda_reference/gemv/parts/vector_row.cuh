// Reads a row 128 bits at a time; shared by the designs from `vectorized` on.
//
// Any contiguous row has a first 16-byte boundary. The elements before it, and after the last whole vector, are read one by
// one, so that no address or pitch is refused and nothing outside the row is read. x, from the same element on, is read by
// vectors where its own address allows, which is checked once per row. Where it may not, as in rows of an odd length, kernels with
// SHIFTED read the aligned words of x that hold a vector's factors, one more than these are, and shift them.
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

// Plus the products before the first vector and after the last.
template <class A, class X>
__device__ __forceinline__ void add_ends(Sum<X>& sum, const A* a, const X* x, int64_t stride_x, int head, int tail, int N,
                                         int first, int step) {
    for (int n = first; n < head; n += step) sum += Sum<X>(a[n]) * Sum<X>(x[n * stride_x]);
    for (int n = tail + first; n < N; n += step) sum += Sum<X>(a[n]) * Sum<X>(x[n * stride_x]);
}

// What begins `bytes` of the first 16 after `words` do.
template <class To, int COUNT> __device__ __forceinline__ To shifted(unsigned (&words)[COUNT], int bytes) {
    static_assert(sizeof(To) + 16 == sizeof words, "of as many words and four more");
#pragma unroll
    for (int i = 0; i < COUNT - 2; ++i) words[i] = bytes & 8 ? words[i + 2] : words[i];
#pragma unroll
    for (int i = 0; i < COUNT - 3; ++i) words[i] = bytes & 4 ? words[i + 1] : words[i];
#pragma unroll
    for (int i = 0; i < COUNT - 4; ++i) words[i] = __funnelshift_r(words[i], words[i + 1], bytes % 4 * 8);
    To to;
    std::memcpy(&to, words, sizeof to);
    return to;
}

// row_sum of contiguous elements, of which x may lie elsewhere within 16 bytes than the row. A last vector that would need a word
// of x past its end is read one by one.
template <int UNROLL, class A, class X>
__device__ __forceinline__ Sum<X> shifted_row_sum(const A* a, const X* x, int N, int first, int step, const Loader& loader) {
    struct Factors { X x[FULL<A>]; };
    constexpr int WORDS = FULL<A> / FULL<X> + 1;  // of 16 bytes
    const int head = min(N, int(-reinterpret_cast<uintptr_t>(a) % 16 / sizeof(A)));
    const int shift = reinterpret_cast<uintptr_t>(x + head) % 16 / sizeof(X);  // from a word's beginning, maybe one before x
    const int vectors = max(0, N - head + shift - FULL<X>) / FULL<A>, tail = head + vectors * FULL<A>;
    Sum<X> sum = 0;
    for (int i = first; i < vectors; i += UNROLL * step) {
        A of_a[UNROLL][FULL<A>];
        unsigned of_x[UNROLL][4 * WORDS];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const int at = head + (i + u * step) * FULL<A>;
            if (at < tail) {
                load_vector(of_a[u], a + at, loader);
#pragma unroll
                for (int w = 0; w < WORDS; ++w) {
                    const uint4 word = *reinterpret_cast<const uint4*>(x + at - shift + w * FULL<X>);
                    std::memcpy(of_x[u] + 4 * w, &word, sizeof word);
                }
            }
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u)
            if (i + u * step < vectors) {
                const auto factors = shifted<Factors>(of_x[u], shift * sizeof(X));
#pragma unroll
                for (int j = 0; j < FULL<A>; ++j) sum += Sum<X>(of_a[u][j]) * Sum<X>(factors.x[j]);
            }
    }
    add_ends(sum, a, x, 1, head, tail, N, first, step);
    return sum;
}

// One thread's share of a row's inner product, as one of `step` threads, of which it is number `first`.
template <int UNROLL, bool SHIFTED, class A, class X>
__device__ __forceinline__ Sum<X> row_sum(const A* a, int64_t stride_a, const X* x, int64_t stride_x, int N, int first,
                                          int step, const Loader& loader) {
    if constexpr (SHIFTED) return shifted_row_sum<UNROLL>(a, x, N, first, step, loader);
    if (stride_a != 1) return scalar_sum(a, stride_a, x, stride_x, N, first, step);
    const int head = min(N, int(-reinterpret_cast<uintptr_t>(a) % 16 / sizeof(A)));
    const int vectors = (N - head) / FULL<A>, tail = head + vectors * FULL<A>;
    const A* a_body = a + head;
    const X* x_body = x + head * stride_x;
    Sum<X> sum = stride_x == 1 && is_aligned16(x_body)  // else x is many small loads, whose addresses take the registers
                     ? sum_of_vectors<UNROLL, true>(a_body, x_body, 1, vectors, first, step, loader)
                     : sum_of_vectors<2, false>(a_body, x_body, stride_x, vectors, first, step, loader);
    add_ends(sum, a, x, stride_x, head, tail, N, first, step);
    return sum;
}

}  // namespace gemv
