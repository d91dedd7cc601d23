// mma.sync (common/mma_sync.cuh): the last lane to arrive collects all lanes' operands and multiplies for the warp.
#pragma once
#include <cmath>
#include <cstring>

#include "mma.h"  // what multipliers make of an operand

namespace simt {

// Numbers per lane, and their places: registers hold half sums in pairs, in the order of an array.
template <class D, class Word> struct MmaOperands {
    D* sum;
    const Word *a, *b;
};

// The hardware adds doubles in an order that is not documented, one fused product after the other.
inline double add_product(double sum, double a, double b) { return std::fma(a, b, sum); }
template <class Sum, class Factor> Sum add_product(Sum sum, Factor a, Factor b) { return sum + Sum(a * b); }

template <class T, class D, class Word> void multiply_warp(Thread* warp, int, unsigned) {
    using Format = std::conditional_t<std::is_same_v<T, float>, nvcuda::wmma::precision::tf32, T>;
    using Factor = decltype(nvcuda::wmma::detail::operand<Format>(T{}));
    using Sum = std::conditional_t<std::is_same_v<Factor, int>, unsigned, Factor>;  // unsigned: int wraps
    using Operands = MmaOperands<D, Word>;
    constexpr int M = 16, N = 8, WORD = sizeof(Word) / sizeof(T), K = 8 * WORD;
    const auto of = [warp](int lane) -> const Operands& { return *static_cast<Operands*>(warp[lane].operand); };
    const auto element = [](const Word* words, int i) {
        T value;
        std::memcpy(&value, reinterpret_cast<const char*>(words) + i * sizeof(T), sizeof value);
        return nvcuda::wmma::detail::operand<Format>(value);
    };

    Factor a[M][K], b[K][N];
    Sum sum[M][N];
    for (int lane = 0; lane < warpSize; ++lane) {
        const int g = lane / 4, t = lane % 4;
        for (int i = 0; i < 4 * WORD; ++i)
            a[g + i / WORD % 2 * 8][i / WORD / 2 * 4 * WORD + t * WORD + i % WORD] = element(of(lane).a, i);
        for (int i = 0; i < 2 * WORD; ++i) b[i / WORD * 4 * WORD + t * WORD + i % WORD][g] = element(of(lane).b, i);
        for (int i = 0; i < 4; ++i) sum[g + i / 2 * 8][t * 2 + i % 2] = Sum(of(lane).sum[i]);
    }
    for (int m = 0; m < M; ++m)
        for (int k = 0; k < K; ++k)
            for (int n = 0; n < N; ++n) sum[m][n] = add_product(sum[m][n], a[m][k], b[k][n]);
    for (int lane = 0; lane < warpSize; ++lane)
        for (int i = 0; i < 4; ++i) of(lane).sum[i] = D(sum[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2]);
}

template <class T, class D, class Word> void mma(D* sum, const Word* a, Word b0, Word b1) {
    if (Block::current->warp_lanes() != warpSize) fail("mma.sync needs all 32 lanes; the block's last warp has fewer");
    const Word b[2] = {b0, b1};
    MmaOperands<D, Word> operands{sum, a, b};
    rendezvous_of_warp("mma.sync", 0xffffffff, operands, multiply_warp<T, D, Word>);
}

}  // namespace simt

template <class T> void mma_sync(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    static_assert(nvcuda::wmma::detail::is_one_of<T, half, __nv_bfloat16, float>, "these accumulate in float");
    simt::mma<T>(sum, a, b0, b1);
}

template <class T> void mma_sync(int (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    static_assert(nvcuda::wmma::detail::is_one_of<T, signed char, unsigned char>, "these accumulate in int");
    simt::mma<T>(sum, a, b0, b1);
}

template <class T> void mma_sync(double (&sum)[4], const double (&a)[4], double b0, double b1) {
    static_assert(std::is_same_v<T, double>, "only double accumulates in double");
    simt::mma<T>(sum, a, b0, b1);
}

template <class T> void mma_sync(half2 (&sum)[2], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    static_assert(std::is_same_v<T, half>, "only half accumulates in half");
    simt::mma<T>(&sum[0].x, a, b0, b1);
}

inline unsigned round_to_tf32(unsigned value) {
    return __float_as_uint(nvcuda::wmma::__float_to_tf32(__uint_as_float(value) + 0.0f));
}
