// The arithmetic of a WMMA instruction, done for the warp by the last lane to arrive.
#pragma once
#include <limits>

#include "mma_fragments.h"

namespace nvcuda {
namespace wmma {
namespace detail {

// A storage element as the multiplier reads it: exact, except that tensor cores ignore the low 13 bits of a tf32.
template <class T, class Storage> auto operand(Storage value) {
    if constexpr (std::is_same_v<T, tf32>)
        return simt::bits<float>(simt::bits<uint32_t>(value) & ~0x1FFFu);
    else if constexpr (is_one_of<T, signed char, unsigned char>)
        return int(value);
    else if constexpr (is_one_of<T, half, __nv_bfloat16>)
        return float(value);
    else
        return value;
}

// The product of two storage elements; OP matters only for bits.
template <class T, experimental::bmmaBitOp OP, class Factor> auto product(Factor a, Factor b) {
    if constexpr (std::is_same_v<T, b1>) {
        return __builtin_popcount(OP == experimental::bmmaBitOpXOR ? a ^ b : a & b);
    } else if constexpr (packed<T> == 8) {
        int sum = 0;  // shifted up, then down again with its sign, if it has one
        for (int i = 28; i >= 0; i -= 4) sum += int(Factor(unsigned(a) << i) >> 28) * int(Factor(unsigned(b) << i) >> 28);
        return sum;
    } else {
        return a * b;  // exact of 16-bit and tf32 operands
    }
}

// An int accumulator wraps or saturates, so it sums in 64 bits.
template <class D, class Sum> D result(Sum sum, bool saturate) {
    using Limits = std::numeric_limits<int>;
    if constexpr (std::is_same_v<D, int>)
        return int(uint32_t(saturate ? std::min<int64_t>(std::max<int64_t>(sum, Limits::min()), Limits::max()) : sum));
    else
        return sum;
}

// The fragments of one lane; layouts matter only for loads.
template <class T, class C, class D> struct Operands {
    typename StorageOf<D>::type* d;
    const typename StorageOf<T>::type *a, *b;
    const typename StorageOf<C>::type* c;
    bool saturate;
};

template <int M, int N, int K, class T, class C, class D, experimental::bmmaBitOp OP> void multiply(simt::Thread* warp) {
    constexpr int DEPTH = K / packed<T>;
    using Factor = decltype(operand<T>(typename StorageOf<T>::type{}));
    using Sum = std::conditional_t<std::is_same_v<D, int>, int64_t, Factor>;
    Factor a[M * DEPTH], b[DEPTH * N];
    Sum sum[M * N];
    const auto of_lane = [warp](int element) -> const Operands<T, C, D>& {
        return *static_cast<const Operands<T, C, D>*>(warp[lane_of(element % warpSize)].operand);
    };
    for (int i = 0; i < M * DEPTH; ++i) a[i] = operand<T>(of_lane(i).a[i / warpSize]);
    for (int i = 0; i < DEPTH * N; ++i) b[i] = operand<T>(of_lane(i).b[i / warpSize]);
    for (int i = 0; i < M * N; ++i) sum[i] = Sum(of_lane(i).c[i / warpSize]);
    for (int m = 0; m < M; ++m)
        for (int k = 0; k < DEPTH; ++k)
            for (int n = 0; n < N; ++n) sum[m * N + n] += product<T, OP>(a[m * DEPTH + k], b[k * N + n]);
    for (int i = 0; i < M * N; ++i) of_lane(i).d[i / warpSize] = result<D>(sum[i], of_lane(i).saturate);
}

// A rendezvous of the lanes, called `name`.
template <experimental::bmmaBitOp OP, int M, int N, int K, class D, class T, class LA, class LB, class C>
void multiply_together(const char* name, fragment<accumulator, M, N, K, D>& d, const fragment<matrix_a, M, N, K, T, LA>& a,
                       const fragment<matrix_b, M, N, K, T, LB>& b, const fragment<accumulator, M, N, K, C>& c,
                       bool saturate) {
    constexpr bool into_int = packed<T> > 1 || is_one_of<T, signed char, unsigned char>;
    static_assert(into_int == std::is_same_v<C, int> && into_int == std::is_same_v<D, int>,
                  "operands of a byte and below, and only they, accumulate in int");
    static_assert(std::is_same_v<T, half> || !is_one_of<half, C, D>, "only half accumulates in half");
    if (simt::Block::current->warp_lanes() != warpSize)
        simt::fail(std::string(name) + " needs all 32 lanes; the block's last warp has fewer");
    Operands<T, C, D> operands{d.x, a.x, b.x, c.x, saturate};
    simt::rendezvous_of_warp(name, 0xffffffff, operands,
                    [](simt::Thread* warp, int, unsigned) { multiply<M, N, K, T, C, D, OP>(warp); });
}

}  // namespace detail
}  // namespace wmma
}  // namespace nvcuda
