// D = A B + C of one WMMA tile, every operand in either layout, and the misuses that must be refused.
#pragma once
#include <cuda_runtime.h>
#include <mma.h>

namespace tile {

using namespace nvcuda;
using tf32 = wmma::precision::tf32;
using bf16 = __nv_bfloat16;
using u4 = wmma::experimental::precision::u4;
using s4 = wmma::experimental::precision::s4;
using b1 = wmma::experimental::precision::b1;

template <class T> __device__ T rounded(T x) { return x; }
__device__ inline float rounded(float x) { return wmma::__float_to_tf32(x); }

template <int M, int N, int K, class T, class Sum, class LayoutA, class LayoutB, class Element>
__device__ void product(const Element* a, int lda, const Element* b, int ldb, const Sum* c, Sum* d, int ldc,
                        wmma::layout_t layout, bool satf) {
    wmma::fragment<wmma::matrix_a, M, N, K, T, LayoutA> fa;
    wmma::fragment<wmma::matrix_b, M, N, K, T, LayoutB> fb;
    wmma::fragment<wmma::accumulator, M, N, K, Sum> fc, fd;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, ldc, layout);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = rounded(fa.x[i]);
    for (int i = 0; i < fb.num_elements; ++i) fb.x[i] = rounded(fb.x[i]);
    wmma::fill_fragment(fd, Sum(0.0f));
    if constexpr (std::is_same<Sum, int>::value)
        wmma::mma_sync(fd, fa, fb, fc, satf);
    else
        wmma::mma_sync(fd, fa, fb, fc);
    wmma::store_matrix_sync(d, fd, ldc, layout);
}

template <int M, int N, int K, class T, class Sum, class Element>
__global__ void multiply(const Element* a, int lda, bool a_by_rows, const Element* b, int ldb, bool b_by_rows,
                         const Sum* c, Sum* d, int ldc, bool c_by_rows, bool satf) {
    const wmma::layout_t layout = c_by_rows ? wmma::mem_row_major : wmma::mem_col_major;
    if (a_by_rows && b_by_rows)
        product<M, N, K, T, Sum, wmma::row_major, wmma::row_major>(a, lda, b, ldb, c, d, ldc, layout, satf);
    if (a_by_rows && !b_by_rows)
        product<M, N, K, T, Sum, wmma::row_major, wmma::col_major>(a, lda, b, ldb, c, d, ldc, layout, satf);
    if (!a_by_rows && b_by_rows)
        product<M, N, K, T, Sum, wmma::col_major, wmma::row_major>(a, lda, b, ldb, c, d, ldc, layout, satf);
    if (!a_by_rows && !b_by_rows)
        product<M, N, K, T, Sum, wmma::col_major, wmma::col_major>(a, lda, b, ldb, c, d, ldc, layout, satf);
}

// Below a byte: A by rows, B by columns. K is 32 of four bits or 128 of one, whose products AND makes, or XOR.
template <int K, class T>
__global__ void multiply_packed(const void* a, int lda, const void* b, int ldb, const int* c, int* d, int ldc,
                                bool c_by_rows, bool satf_or_and) {
    using namespace wmma::experimental;
    const wmma::layout_t layout = c_by_rows ? wmma::mem_row_major : wmma::mem_col_major;
    wmma::fragment<wmma::matrix_a, 8, 8, K, T, wmma::row_major> fa;
    wmma::fragment<wmma::matrix_b, 8, 8, K, T, wmma::col_major> fb;
    wmma::fragment<wmma::accumulator, 8, 8, K, int> fc, fd;
    wmma::load_matrix_sync(fa, a, lda);
    wmma::load_matrix_sync(fb, b, ldb);
    wmma::load_matrix_sync(fc, c, ldc, layout);
    if constexpr (K == 32)
        wmma::mma_sync(fd, fa, fb, fc, satf_or_and);
    else if (satf_or_and)
        wmma::bmma_sync(fd, fa, fb, fc, bmmaBitOpAND, bmmaAccumulateOpPOPC);
    else
        wmma::bmma_sync(fd, fa, fb, fc);
    wmma::store_matrix_sync(d, fd, ldc, layout);
}

// Of a fill with `value`, this lane's storage elements.
template <int K, class T> __global__ void fill_packed(unsigned value, unsigned* out) {
    wmma::fragment<wmma::matrix_a, 8, 8, K, T, wmma::row_major> fragment;
    wmma::fill_fragment(fragment, value);
    out[threadIdx.x] = fragment.x[0];
}

// One lane stays away, or the lanes load different tiles.
__global__ void wrong(const half* a, int which) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> fragment;
    if (which == 0 && threadIdx.x == 31) return;
    wmma::load_matrix_sync(fragment, which == 1 ? a + threadIdx.x * 16 : a, 16);
}

}  // namespace tile
