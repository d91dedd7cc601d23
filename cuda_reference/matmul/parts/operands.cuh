// The operands of nvcuda::wmma: the element in memory, its fragment type, the depth K of a step.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

namespace matmul {

using nvcuda::wmma::col_major;
using nvcuda::wmma::row_major;

// PACKED elements of a fragment are one Element in memory, the first in its low bits. A packed A lies by rows, a B by columns.
template <class E, class F, int DEPTH, int P = 1> struct Operand {
    using Element = E;
    using Fragment = F;
    static constexpr int K = DEPTH, PACKED = P;
};

using Half = Operand<__half, __half, 16>;
using Int8 = Operand<signed char, signed char, 16>;
using Uint8 = Operand<unsigned char, unsigned char, 16>;
using Int4 = Operand<unsigned char, nvcuda::wmma::experimental::precision::s4, 32, 2>;
using Uint4 = Operand<unsigned char, nvcuda::wmma::experimental::precision::u4, 32, 2>;
struct BitsXor : Operand<unsigned char, nvcuda::wmma::experimental::precision::b1, 128, 8> {
    static constexpr auto OP = nvcuda::wmma::experimental::bmmaBitOpXOR;
};
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800  // before, mma.h does not know these
using BFloat16 = Operand<__nv_bfloat16, __nv_bfloat16, 16>;
using Tf32 = Operand<float, nvcuda::wmma::precision::tf32, 8>;
using Double = Operand<double, double, 4>;
struct BitsAnd : Operand<unsigned char, nvcuda::wmma::experimental::precision::b1, 128, 8> {
    static constexpr auto OP = nvcuda::wmma::experimental::bmmaBitOpAND;
};

// The addition makes a NaN quiet: a payload in only the 13 bits that the tensor core ignores would turn into an infinity.
__device__ __forceinline__ float to_tf32(float x) { return nvcuda::wmma::__float_to_tf32(x + 0.0f); }
#endif

template <class Operand, int M, int N, class Layout>
using FragmentA = nvcuda::wmma::fragment<nvcuda::wmma::matrix_a, M, N, Operand::K, typename Operand::Fragment, Layout>;
template <class Operand, int M, int N, class Layout>
using FragmentB = nvcuda::wmma::fragment<nvcuda::wmma::matrix_b, M, N, Operand::K, typename Operand::Fragment, Layout>;
template <class Operand, int M, int N, class Sum>
using Accumulator = nvcuda::wmma::fragment<nvcuda::wmma::accumulator, M, N, Operand::K, Sum>;

// From a tile whose rows (or columns) lie `pitch` Elements apart. tf32 is rounded here, because the tensor core would truncate.
// The map of a fragment's x[i] to elements is unspecified, but does not matter when all are treated alike.
template <class Operand, class Fragment>
__device__ __forceinline__ void load(Fragment& fragment, const typename Operand::Element* tile, int pitch) {
    nvcuda::wmma::load_matrix_sync(fragment, tile, pitch * Operand::PACKED);
    if constexpr (std::is_same<typename Operand::Element, float>::value) {
#pragma unroll
        for (int i = 0; i < fragment.num_elements; ++i) fragment.x[i] = to_tf32(fragment.x[i]);
    }
}

// +Inf -> the largest half, -Inf -> the smallest, NaN -> +0: satf, which mma.h has for int sums only.
__device__ __forceinline__ __half saturated(__half value) {
    const float x = __half2float(value);
    return __float2half(x != x ? 0.0f : fminf(fmaxf(x, -65504.0f), 65504.0f));
}

// sum += A B of a step. SATURATE: int sums stop at the ends of their range, half sums stay finite.
template <class Operand, bool SATURATE, class Sum, class A, class B>
__device__ __forceinline__ void multiply_add(Sum& sum, const A& a, const B& b) {
    using SumType = typename Sum::element_type;
    constexpr bool saturates = std::is_same<SumType, int>::value || std::is_same<SumType, __half>::value;
    static_assert(!SATURATE || (saturates && Operand::PACKED < 8), "half and int sums saturate, but not those of bits");
    if constexpr (Operand::PACKED == 8) {
        nvcuda::wmma::bmma_sync(sum, a, b, sum, Operand::OP, nvcuda::wmma::experimental::bmmaAccumulateOpPOPC);
    } else if constexpr (std::is_same<SumType, int>::value) {
        nvcuda::wmma::mma_sync(sum, a, b, sum, SATURATE);
    } else {
        nvcuda::wmma::mma_sync(sum, a, b, sum);
        if constexpr (SATURATE) {
#pragma unroll
            for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = saturated(sum.x[i]);
        }
    }
}

}  // namespace matmul
