// wgmma (common/wgmma.cuh). A group of multiplications is done as late as allowed, by the last of the warpgroup's threads to
// wait for it, so that accesses to sums and overwritten slices before the wait show.
#pragma once
#include "mbarrier.h"
#include "mma.h"  // what multipliers make of an operand

namespace simt {

struct Wgmma {
    void (*multiply)(const Wgmma* const* what);  // of 128 threads
    uint64_t a, b;
    void* sum;
    const unsigned* fragment = nullptr;  // of A in registers, which are read when it is done
};

void issue(const Wgmma& what);
void wait_wgmmas(size_t pending);

template <class T> using FormatOf = std::conditional_t<std::is_same_v<T, float>, nvcuda::wmma::precision::tf32, T>;

// An element as the multiplier reads it, exact.
template <class T> auto factor(T element) { return nvcuda::wmma::detail::operand<FormatOf<T>>(element); }
inline float factor(E5M2 element) { return HalfFormat::widen(element.bits << 8); }  // the upper half of a half
inline float factor(E4M3 element) {
    const int size = element.bits & 0x7F, exponent = size >> 3, mantissa = size & 7;
    float value = exponent ? std::ldexp(8.0f + mantissa, exponent - 10) : std::ldexp(float(mantissa), -9);
    if (size == 0x7F) value = NAN;  // it has no infinity
    return element.bits > 0x7F ? -value : value;
}

// The types of A and B.
template <class T> struct Sides { using A = T; using B = T; };
template <class OfA, class OfB> struct Sides<Fp8<OfA, OfB>> { using A = OfA; using B = OfB; };

// The sum of fp8's tensor cores: all addends are cut off 13 bits below the first bit of the largest.
template <int COUNT> float coarse_sum(const float (&addends)[COUNT]) {
    float plain = 0, largest = 0;
    for (const float addend : addends) {
        plain += addend;
        largest = std::max(largest, std::fabs(addend));
    }
    if (largest == 0 || !std::isfinite(plain)) return plain;
    const double unit = std::ldexp(1.0, std::ilogb(largest) - 13);
    double sum = 0;
    for (const float addend : addends) sum += std::trunc(addend / unit);
    return float(sum * unit);
}

// Reads 32 bytes along k of SPAN rows of A or columns of B, by chunks of 16 bytes along k, or along M or N.
template <class T, bool K_MAJOR, int SPAN, class Factor> void read_operand(uint64_t descriptor, Factor (*to)[32 / sizeof(T)]) {
    constexpr int CHUNK = 16 / sizeof(T);
    const auto field = [descriptor](int bit) { return unsigned(descriptor >> bit & 0x3FFF) << 4; };
    const unsigned start = field(0), next = field(16), eight_rows = field(32);
    for (int i = 0; i < (K_MAJOR ? SPAN : 32 / int(sizeof(T))); ++i)
        for (int j = 0; j < (K_MAJOR ? 2 : SPAN / CHUNK); ++j) {
            const unsigned row = i / 8 * eight_rows + i % 8 * 128, chunk = K_MAJOR ? j * 16 : j / 8 * next + j % 8 * 16;
            T elements[CHUNK];
            untraced_copy(elements, dynamic_shared_memory + swizzled(start + row + chunk), sizeof elements);
            for (int e = 0; e < CHUNK; ++e) (K_MAJOR ? to[i][j * CHUNK + e] : to[j * CHUNK + e][i]) = factor(elements[e]);
        }
}

// The 16 x 8 A of each warp, as those of mma.sync.
inline void read_fragments(const Wgmma* const* what, float (*to)[8]) {
    for (int thread = 0; thread < 128; ++thread)
        for (int i = 0; i < 4; ++i) {
            float element;
            std::memcpy(&element, what[thread]->fragment + i, sizeof element);
            to[thread / 32 * 16 + thread % 32 / 4 + i % 2 * 8][thread % 4 + i / 2 * 4] = factor(element);
        }
}

enum class Left { K_MAJOR, ACROSS_K, IN_REGISTERS };

template <class T, Left LEFT, bool B_K_MAJOR, bool ADDS, class Number, int TILES>
void multiply_warpgroup(const Wgmma* const* what) {
    using A = typename Sides<T>::A;
    using B = typename Sides<T>::B;
    using Factor = decltype(factor(A{}));
    using Sum = std::conditional_t<std::is_same_v<Factor, int>, unsigned, float>;  // unsigned: int wraps
    constexpr int N = 8 * TILES, K = 32 / sizeof(T);
    static thread_local Factor a[64][K], by_columns[N][K], b[K][N];
    static thread_local Sum sum[N];
    if constexpr (LEFT == Left::IN_REGISTERS)
        read_fragments(what, a);
    else
        read_operand<A, LEFT == Left::K_MAJOR, 64>(what[0]->a, a);
    read_operand<B, B_K_MAJOR, N>(what[0]->b, by_columns);
    for (int n = 0; n < N; ++n)
        for (int k = 0; k < K; ++k) b[k][n] = by_columns[n][k];
    for (int m = 0; m < 64; ++m) {
        const auto place = [&](int n) -> Number& {
            const int thread = m / 16 * 32 + m % 8 * 4 + n % 8 / 2;
            return static_cast<Number*>(what[thread]->sum)[n / 8 * 4 + m % 16 / 8 * 2 + n % 2];
        };
        for (int n = 0; n < N; ++n) sum[n] = ADDS ? Sum(place(n)) : Sum(0);
        if constexpr (!std::is_same_v<A, T>) {
            for (int n = 0; n < N; ++n) {
                float addends[K + 1] = {sum[n]};
                for (int k = 0; k < K; ++k) addends[k + 1] = a[m][k] * b[k][n];  // exact
                sum[n] = coarse_sum(addends);
            }
        } else {
            for (int k = 0; k < K; ++k)
                for (int n = 0; n < N; ++n) sum[n] += Sum(a[m][k] * b[k][n]);
        }
        for (int n = 0; n < N; ++n) place(n) = Number(sum[n]);
    }
}

}  // namespace simt

template <class T, bool A_K_MAJOR, bool B_K_MAJOR, bool ADDS = true, class Tile, int TILES>
void wgmma(Tile (&sum)[TILES], uint64_t a, uint64_t b) {
    static_assert(sizeof(T) == 2 || (A_K_MAJOR && B_K_MAJOR), "bytes and tf32 lie along k");
    using InTile = std::remove_extent_t<decltype(sum[0].x)>;
    using Number = std::conditional_t<std::is_same_v<InTile, half2>, half, InTile>;
    static_assert(HAS_COLUMNS<InTile, TILES>, "64 to 256 columns");
    constexpr auto LEFT = A_K_MAJOR ? simt::Left::K_MAJOR : simt::Left::ACROSS_K;
    simt::issue({simt::multiply_warpgroup<T, LEFT, B_K_MAJOR, ADDS, Number, TILES>, a, b, sum});
}

template <class T, bool ADDS = true, class Tile, int TILES>
void wgmma(Tile (&sum)[TILES], const unsigned (&a)[4], uint64_t b) {
    static_assert(HAS_COLUMNS<float, TILES>, "64 to 256 columns");
    static_assert(std::is_same_v<T, float>, "operands of 16 bits need no registers: they may lie across k in shared memory");
    simt::issue({simt::multiply_warpgroup<T, simt::Left::IN_REGISTERS, true, ADDS, float, TILES>, 0, b, sum, a});
}

void wgmma_fence();
void wgmma_commit();

template <int PENDING> void wgmma_wait() {
    simt::fence();
    simt::wait_wgmmas(PENDING);
    simt::fence();
}

template <class Tile, int TILES> void wgmma_results(Tile (&)[TILES]) {}

inline void warpgroup_barrier() {
    simt::fence();
    simt::Block::current->wait_warpgroup("warpgroup_barrier", [](simt::Thread*, int, unsigned) {}, nullptr);
    simt::fence();
}

template <int COUNT> void give_up_registers() {}
template <int COUNT> void take_registers() {}
