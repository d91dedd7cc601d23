// nvcuda::wmma. Which lane holds which element is the hardware's secret, so any one-to-one map will do: element i of
// lane l is number 32 * i + l in row-major order. All 32 lanes must come; the last to come multiplies for the warp.
#pragma once
#include <limits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "warp.h"

namespace nvcuda {
namespace wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

namespace detail {

template <int M, int N, int K>
constexpr bool is_square_or_32x8 =
    (M == 16 && N == 16 && K == 16) || (M == 32 && N == 8 && K == 16) || (M == 8 && N == 32 && K == 16);

template <class T, class... Types> constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

template <class Use, int M, int N, int K, class T> constexpr bool exists() {
    constexpr bool sum = std::is_same_v<Use, accumulator>;
    if (M == 16 && N == 16 && K == 8) return std::is_same_v<T, std::conditional_t<sum, float, precision::tf32>>;
    if (M == 8 && N == 8 && K == 4) return std::is_same_v<T, double>;
    if (!is_square_or_32x8<M, N, K>) return false;
    return sum ? is_one_of<T, float, half, int> : is_one_of<T, half, __nv_bfloat16, signed char, unsigned char>;
}

template <class T> struct StorageOf {
    using type = T;
};
template <> struct StorageOf<precision::tf32> {
    using type = float;
};

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout = void> class fragment {
    static_assert(detail::exists<Use, M, N, K, T>(),
                  "no such fragment: half, __nv_bfloat16, signed char and unsigned char come in 16x16x16, 32x8x16 and "
                  "8x32x16 with accumulators "
                  "of float, half (for half) and int; precision::tf32 in 16x16x8 with float; double in 8x8x4");
    static_assert(
        std::is_same_v<Use, accumulator> ? std::is_void_v<Layout> : detail::is_one_of<Layout, row_major, col_major>,
        "matrix_a and matrix_b take row_major or col_major; an accumulator gets its layout from the load or store");

public:
    using element_type = T;
    using storage_element_type = typename detail::StorageOf<T>::type;
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K : M;
    static constexpr int cols = std::is_same_v<Use, matrix_a> ? K : N;
    static constexpr int num_elements = rows * cols / warpSize;
    static constexpr int num_storage_elements = num_elements;
    storage_element_type x[num_elements];
};

namespace detail {

struct Address {
    const void* pointer;
    unsigned ldm;
};

// One matrix for the warp: the lanes come together and agree on it.
template <class T> void meet_at(const char* name, const T* pointer, unsigned ldm) {
    if (reinterpret_cast<uintptr_t>(pointer) % 32 != 0)
        simt::fail(std::string(name) + ": the pointer is not aligned to 32 bytes");
    if (ldm * sizeof(T) % 16 != 0)
        simt::fail(std::string(name) + ": ldm " + std::to_string(ldm) + " of " + std::to_string(sizeof(T)) +
                   "-byte elements is not a multiple of 16 bytes");
    if (simt::Block::current->warp_lanes() != warpSize)
        simt::fail(std::string(name) + " needs all 32 lanes; the block's last warp has fewer");
    Address address{pointer, ldm};
    simt::meet_warp(name, 0xffffffff, address, [](simt::Thread* warp, int lanes, unsigned) {
        const auto& first = *static_cast<Address*>(warp[0].operand);
        for (int i = 1; i < lanes; ++i) {
            const auto& other = *static_cast<Address*>(warp[i].operand);
            if (other.pointer != first.pointer || other.ldm != first.ldm)
                simt::fail("the lanes of a warp load or store different WMMA tiles");
        }
    });
}

// Where this lane's element i lies.
template <class Fragment> size_t offset(int i, unsigned ldm, bool by_rows) {
    const unsigned element = i * warpSize + simt::lane(), row = element / Fragment::cols,
                   col = element % Fragment::cols;
    return by_rows ? size_t(row) * ldm + col : size_t(col) * ldm + row;
}

template <class Fragment, class T> void load(Fragment& a, const T* pointer, unsigned ldm, bool by_rows) {
    meet_at("load_matrix_sync", pointer, ldm);
    for (int i = 0; i < Fragment::num_elements; ++i) a.x[i] = pointer[offset<Fragment>(i, ldm, by_rows)];
}

// What the multiplier makes of an operand: exact, but that tensor cores ignore the low 13 bits of a tf32.
template <class T, class Storage> auto operand(Storage value) {
    if constexpr (std::is_same_v<T, precision::tf32>)
        return simt::bits<float>(simt::bits<uint32_t>(value) & ~0x1FFFu);
    else if constexpr (is_one_of<T, signed char, unsigned char>)
        return int(value);
    else if constexpr (std::is_same_v<T, double>)
        return value;
    else
        return float(value);
}

// An int accumulator wraps unless it saturates, so it sums in 64 bits.
template <class D, class Sum> D result(Sum sum, bool saturate) {
    using Limits = std::numeric_limits<int>;
    if constexpr (std::is_same_v<D, int>) {
        return int(uint32_t(saturate ? std::min<int64_t>(std::max<int64_t>(sum, Limits::min()), Limits::max()) : sum));
    } else if constexpr (std::is_same_v<D, half>) {
        if (!saturate) return sum;
        return std::isnan(sum) ? 0.f : std::fmin(std::fmax(sum, -65504.f), 65504.f);
    } else {
        return sum;
    }
}

// The fragments of one lane, whatever their layouts: those decided only where a load put what.
template <class A, class C, class D> struct Operands {
    typename StorageOf<D>::type* d;
    const typename StorageOf<A>::type *a, *b;
    const typename StorageOf<C>::type* c;
    bool saturate;
};

template <int M, int N, int K, class A, class C, class D> void multiply(simt::Thread* warp) {
    using Factor = decltype(operand<A>(typename StorageOf<A>::type{}));
    using Sum = std::conditional_t<std::is_same_v<Factor, int>, int64_t, Factor>;
    Factor a[M * K], b[K * N];
    Sum sum[M * N];
    const auto of_lane = [warp](int element) -> const Operands<A, C, D>& {
        return *static_cast<const Operands<A, C, D>*>(warp[element % warpSize].operand);
    };
    for (int i = 0; i < M * K; ++i) a[i] = operand<A>(of_lane(i).a[i / warpSize]);
    for (int i = 0; i < K * N; ++i) b[i] = operand<A>(of_lane(i).b[i / warpSize]);
    for (int i = 0; i < M * N; ++i) sum[i] = Sum(of_lane(i).c[i / warpSize]);
    for (int m = 0; m < M; ++m)
        for (int k = 0; k < K; ++k)
            for (int n = 0; n < N; ++n)
                sum[m * N + n] += a[m * K + k] * b[k * N + n];  // exact products of 16-bit and tf32 operands
    for (int i = 0; i < M * N; ++i) of_lane(i).d[i / warpSize] = result<D>(sum[i], of_lane(i).saturate);
}

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout, class Value>
void fill_fragment(fragment<Use, M, N, K, T, Layout>& a, const Value& value) {
    for (auto& x : a.x) x = value;
}

template <class Use, int M, int N, int K, class T, class Layout>
void load_matrix_sync(fragment<Use, M, N, K, T, Layout>& a, const typename detail::StorageOf<T>::type* pointer,
                      unsigned ldm) {
    static_assert(!std::is_same_v<Use, accumulator>, "loading an accumulator takes a layout_t");
    detail::load(a, pointer, ldm, std::is_same_v<Layout, row_major>);
}

template <int M, int N, int K, class T>
void load_matrix_sync(fragment<accumulator, M, N, K, T>& a, const T* pointer, unsigned ldm, layout_t layout) {
    detail::load(a, pointer, ldm, layout == mem_row_major);
}

template <int M, int N, int K, class T>
void store_matrix_sync(T* pointer, const fragment<accumulator, M, N, K, T>& a, unsigned ldm, layout_t layout) {
    detail::meet_at("store_matrix_sync", pointer, ldm);
    using Fragment = fragment<accumulator, M, N, K, T>;
    for (int i = 0; i < a.num_elements; ++i)
        pointer[detail::offset<Fragment>(i, ldm, layout == mem_row_major)] = a.x[i];
}

template <int M, int N, int K, class TD, class TA, class LA, class TB, class LB, class TC>
void mma_sync(fragment<accumulator, M, N, K, TD>& d, const fragment<matrix_a, M, N, K, TA, LA>& a,
              const fragment<matrix_b, M, N, K, TB, LB>& b, const fragment<accumulator, M, N, K, TC>& c,
              bool satf = false) {
    static_assert(std::is_same_v<TA, TB>, "A and B have one type");
    constexpr bool bytes = detail::is_one_of<TA, signed char, unsigned char>;
    static_assert(bytes == std::is_same_v<TC, int> && bytes == std::is_same_v<TD, int>,
                  "signed char and unsigned char, and only they, accumulate in int");
    static_assert(std::is_same_v<TA, half> || !detail::is_one_of<half, TC, TD>, "only half accumulates in half");
    if (simt::Block::current->warp_lanes() != warpSize)
        simt::fail("mma_sync needs all 32 lanes; the block's last warp has fewer");
    detail::Operands<TA, TC, TD> operands{d.x, a.x, b.x, c.x, satf};
    simt::meet_warp("mma_sync", 0xffffffff, operands,
                    [](simt::Thread* warp, int, unsigned) { detail::multiply<M, N, K, TA, TC, TD>(warp); });
}

// Rounds to nearest, ties away from zero, as cvt.rna.tf32.f32 does; NaN and infinity stay.
inline float __float_to_tf32(float value) {
    const uint32_t pattern = simt::bits<uint32_t>(value);
    if ((pattern & 0x7F800000) == 0x7F800000) return value;
    return simt::bits<float>((pattern + 0x1000) & ~0x1FFFu);
}

}  // namespace wmma
}  // namespace nvcuda
