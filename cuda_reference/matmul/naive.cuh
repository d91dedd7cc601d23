// Matrix product on tensor cores, naive (nvcuda::wmma): a warp owns one WM x WN fragment of C and adds one product per step of K.
//
// It has all 20 combinations of types and shapes of WMMA; operands.cuh names the types. Operands of any size and strides pass
// through shared memory, padded with zeros, because load_matrix_sync needs whole tiles, 32-byte aligned pointers and a leading
// dimension that is a multiple of 16 bytes. A tile is stored by rows or by columns, as its matrix in memory, so that
// neighbouring lanes read contiguous elements. WMMA does not specify which lane holds which element of a fragment, so the result
// is written through shared memory as well.
#pragma once
#include "../common/overlap.cuh"
#include "parts/epilogue.cuh"
#include "parts/operands.cuh"

namespace matmul {

// A ROWS x COLS tile in shared memory, stored by rows or by columns: OUTER of them, PITCH elements apart.
template <class Element, int ROWS, int COLS, class Layout> struct WarpTile {
    static constexpr bool BY_ROWS = std::is_same<Layout, row_major>::value;
    static constexpr int OUTER = BY_ROWS ? ROWS : COLS, INNER = BY_ROWS ? COLS : ROWS;
    static constexpr int PITCH = INNER * sizeof(Element) < 16 ? 16 / sizeof(Element) : INNER;
    static_assert(PITCH * sizeof(Element) % 16 == 0, "load_matrix_sync takes leading dimensions in multiples of 16 bytes");

    Element at[OUTER][PITCH];

    // From (first_row, first_col) of a rows x cols matrix; zeros past its edges, which add nothing to a sum.
    __device__ void load(const Element* matrix, int first_row, int first_col, int rows, int cols, int64_t stride_row,
                         int64_t stride_col) {
        for (int i = threadIdx.x; i < ROWS * COLS; i += 32) {
            const int outer = i / INNER, inner = i % INNER;
            const int row = first_row + (BY_ROWS ? outer : inner), col = first_col + (BY_ROWS ? inner : outer);
            at[outer][inner] = row < rows && col < cols ? matrix[row * stride_row + col * stride_col] : Element{};
        }
    }
};

template <class Operand, class Sum, int WM, int WN, class LayoutA, class LayoutB, class Out, bool SATURATE = false>
__global__ void __launch_bounds__(32)
naive(const typename Operand::Element* __restrict__ a, const typename Operand::Element* __restrict__ b,
      const Out* __restrict__ c, const Out* __restrict__ bias, Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha,
      Scalar<Sum> beta, int activation, Strides stride) {
    wait_for_earlier_kernels();
    using Element = typename Operand::Element;
    constexpr int WK = Operand::K / Operand::PACKED;  // in Elements, like K below
    K /= Operand::PACKED;
    __shared__ __align__(32) WarpTile<Element, WM, WK, LayoutA> a_tile;
    __shared__ __align__(32) WarpTile<Element, WK, WN, LayoutB> b_tile;
    __shared__ __align__(32) Sum c_tile[WM][WN];

    const int tiles_m = ceil_div(M, WM), tiles_n = ceil_div(N, WN);
    const int tile = blockIdx.x % (tiles_m * tiles_n), batch = blockIdx.x / (tiles_m * tiles_n);
    const int first_row = tile / tiles_n * WM, first_col = tile % tiles_n * WN;
    a += batch * stride.a.batch;
    b += batch * stride.b.batch;

    Accumulator<Operand, WM, WN, Sum> sum;
    nvcuda::wmma::fill_fragment(sum, Sum(0));
    for (int k = 0; k < K; k += WK) {
        a_tile.load(a, first_row, k, M, K, stride.a.row, stride.a.col);
        b_tile.load(b, k, first_col, K, N, stride.b.row, stride.b.col);
        __syncwarp();  // both tiles are complete
        FragmentA<Operand, WM, WN, LayoutA> a_fragment;
        FragmentB<Operand, WM, WN, LayoutB> b_fragment;
        load<Operand>(a_fragment, &a_tile.at[0][0], a_tile.PITCH);
        load<Operand>(b_fragment, &b_tile.at[0][0], b_tile.PITCH);
        multiply_add<Operand, SATURATE>(sum, a_fragment, b_fragment);
        __syncwarp();  // all lanes have read the tiles: the next step may overwrite them
    }

    nvcuda::wmma::store_matrix_sync(&c_tile[0][0], sum, WN, nvcuda::wmma::mem_row_major);
    __syncwarp();
    const Epilogue<Sum, Out> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
    for (int i = threadIdx.x; i < WM * WN; i += 32) {
        const int row = first_row + i / WN, col = first_col + i % WN;
        if (row < M && col < N) epilogue.store(c_tile[i / WN][i % WN], row, col);
    }
}

}  // namespace matmul
