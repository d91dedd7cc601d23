// The WMMA fragments, and the elements that each lane holds.
//
// The hardware's map of elements to lanes is unspecified, so any one-to-one map will do: storage element i of lane l is number
// 32 * i + 31 - l in row-major order. Not 32 * i + l: kernels go through a stored fragment so, and where each lane read only
// what it had stored itself, a missing barrier would not show. A storage element is one element, or 8 neighbours along K of u4
// and s4, or 32 of b1.
#pragma once
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "warp.h"

namespace nvcuda {
namespace wmma {
namespace detail {

// The lane of a storage element by its number modulo 32, and the other way round.
inline int lane_of(int number) { return warpSize - 1 - number; }

}  // namespace detail

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
namespace experimental {
namespace precision {
struct u4;
struct s4;
struct b1;
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental

namespace detail {

using experimental::precision::b1;
using experimental::precision::s4;
using experimental::precision::u4;
using precision::tf32;

template <class T, class... Types> constexpr bool is_one_of = (std::is_same_v<T, Types> || ...);

template <class T> constexpr int packed = std::is_same_v<T, b1> ? 32 : is_one_of<T, u4, s4> ? 8 : 1;

template <class T> struct StorageOf {
    using type = T;
};
template <> struct StorageOf<tf32> {
    using type = float;
};
template <> struct StorageOf<u4> {
    using type = unsigned;
};
template <> struct StorageOf<s4> {
    using type = int;
};
template <> struct StorageOf<b1> {
    using type = unsigned;
};

template <class Use, int M, int N, int K, class T> constexpr bool exists() {
    constexpr bool sum = std::is_same_v<Use, accumulator>;
    constexpr bool wide = M * N == 256 && (M == 8 || M == 16 || M == 32);
    if (wide && K == 16)
        return sum ? is_one_of<T, float, half, int> : is_one_of<T, half, __nv_bfloat16, signed char, unsigned char>;
    if (M == 16 && N == 16 && K == 8) return std::is_same_v<T, std::conditional_t<sum, float, tf32>>;
    if (M != 8 || N != 8) return false;
    if (K == 4) return std::is_same_v<T, double>;
    if (K == 32) return sum ? std::is_same_v<T, int> : is_one_of<T, u4, s4>;
    return K == 128 && std::is_same_v<T, std::conditional_t<sum, int, b1>>;
}

template <class Use, class T, class Layout> constexpr bool layout_is_legal() {
    if (std::is_same_v<Use, accumulator>) return std::is_void_v<Layout>;
    if (packed<T> > 1) return std::is_same_v<Layout, std::conditional_t<std::is_same_v<Use, matrix_a>, row_major, col_major>>;
    return is_one_of<Layout, row_major, col_major>;
}

}  // namespace detail

template <class Use, int M, int N, int K, class T, class Layout = void> class fragment {
    static_assert(detail::exists<Use, M, N, K, T>(),
                  "no such fragment: half, __nv_bfloat16, signed char and unsigned char come in 16x16x16, 32x8x16 and "
                  "8x32x16 with accumulators of float, half (for half) and int; precision::tf32 in 16x16x8 with float; double "
                  "in 8x8x4; experimental u4 and s4 in 8x8x32 and b1 in 8x8x128 with int");
    static_assert(detail::layout_is_legal<Use, T, Layout>(),
                  "matrix_a and matrix_b take row_major or col_major, but below a byte only matrix_a row_major and matrix_b "
                  "col_major; an accumulator gets its layout from the load or store");
    static constexpr int PACKED = detail::packed<T>;

public:
    using element_type = T;
    using storage_element_type = typename detail::StorageOf<T>::type;
    static constexpr int rows = std::is_same_v<Use, matrix_b> ? K / PACKED : M;  // of storage elements
    static constexpr int cols = std::is_same_v<Use, matrix_a> ? K / PACKED : N;
    static constexpr int num_storage_elements = rows * cols / warpSize;
    static constexpr int num_elements = num_storage_elements * PACKED;
    storage_element_type x[num_storage_elements];
};

}  // namespace wmma
}  // namespace nvcuda
