// Matrix product on tensor cores, tiled (nvcuda::wmma): the warps of a block share slices of a BM x BN x BK tile; each multiplies
// FM x FN fragments.
//
// In `naive` a 16 x 16 warp tile reads 32 elements per k from global memory for 256 multiply-adds, and waits for each. A 128 x
// 128 block tile reads 256 for 16384, an eighth per multiply-add, in 16-byte vectors where strides allow, and the next slice is
// loaded into registers while one is multiplied. From shared memory a 32 x 64 warp tile reads 96 elements per k for 2048
// multiply-adds, three eighths.
//
// Rows of the shared slices are skewed: with a pitch of 128 bytes all rows of a fragment would begin in the same bank.
//
// 8-bit fragments are fastest with contiguous k (A by rows, B by columns): ldmatrix cannot transpose bytes, so other layouts are
// read byte by byte.
// Mirrors tritonkernels/matmul/tiled.py.
#pragma once
#include "../common/overlap.cuh"
#include "../common/vector.cuh"
#include "parts/epilogue.cuh"
#include "parts/operands.cuh"

namespace matmul {

// A ROWS x COLS slice in shared memory, by rows or by columns as in global memory: OUTER lines of INNER contiguous elements.
template <class Element, int ROWS, int COLS, class Layout, bool K_INSIDE, int THREADS> struct SkewedTile {
    static constexpr bool BY_ROWS = std::is_same<Layout, row_major>::value;
    static constexpr int OUTER = BY_ROWS ? ROWS : COLS, INNER = BY_ROWS ? COLS : ROWS;
    // A line of an 8-bit fragment is 16 bytes, but load_matrix_sync needs an alignment of 32, so these fragments are stored in
    // panels of their width. There 8 lines use each bank once, without skew.
    static constexpr int PANEL = sizeof(Element) == 1 ? 16 : INNER;
    // A read of a 16-bit fragment, or of a 32-bit one with contiguous k, takes 16 bytes of 8 lines each; of others, 32 bytes of
    // 4 lines. With this skew the lines of one read lie in different banks.
    static constexpr bool EIGHT_LINES = sizeof(Element) == 2 || (sizeof(Element) == 4 && K_INSIDE);
    static constexpr int PITCH = PANEL + (sizeof(Element) == 1 ? 0 : EIGHT_LINES ? 16 : 32) / sizeof(Element);
    static constexpr int E = 16 / sizeof(Element);  // elements in a vector
    static constexpr int VECTORS = ROWS * COLS / E / THREADS;
    static_assert(INNER % E == 0 && ROWS * COLS % (E * THREADS) == 0, "every thread carries the same number of vectors");

    __align__(32) Element elements[INNER / PANEL * OUTER * PITCH];

    __device__ __forceinline__ static int outer(int i) { return (threadIdx.x + i * THREADS) / (INNER / E); }
    __device__ __forceinline__ static int inner(int i) { return (threadIdx.x + i * THREADS) % (INNER / E) * E; }
    __device__ __forceinline__ static int place(int outer, int inner) {
        return (inner / PANEL * OUTER + outer) * PITCH + inner % PANEL;
    }

    __device__ __forceinline__ const Element* at(int row, int col) const {
        return elements + (BY_ROWS ? place(row, col) : place(col, row));
    }

    // Loads a slice from `from`, where the matrix has `rows` and `cols` left; zeros past its edges, which add nothing to a sum.
    // For lines aligned to 16 bytes and whole vectors long. put() stores the vectors in shared memory.
    __device__ __forceinline__ static void fetch(uint4 (&vectors)[VECTORS], const Element* from, int rows, int cols,
                                                 int64_t pitch) {
#pragma unroll
        for (int i = 0; i < VECTORS; ++i) {
            const bool inside = outer(i) < (BY_ROWS ? rows : cols) && inner(i) < (BY_ROWS ? cols : rows);
            vectors[i] = make_uint4(0, 0, 0, 0);
            if (inside) vectors[i] = *reinterpret_cast<const uint4*>(from + outer(i) * pitch + inner(i));
        }
    }

    __device__ __forceinline__ void put(const uint4 (&vectors)[VECTORS]) {
#pragma unroll
        for (int i = 0; i < VECTORS; ++i) *reinterpret_cast<uint4*>(elements + place(outer(i), inner(i))) = vectors[i];
    }

    // The same for any strides, element by element; neighbouring lanes read contiguous elements in either layout.
    __device__ __forceinline__ void fill(const Element* from, int rows, int cols, int64_t stride_row, int64_t stride_col) {
#pragma unroll 4
        for (int i = threadIdx.x; i < ROWS * COLS; i += THREADS) {
            const int row = stride_row == 1 ? i % ROWS : i / COLS, col = stride_row == 1 ? i / ROWS : i % COLS;
            elements[BY_ROWS ? place(row, col) : place(col, row)] =
                row < rows && col < cols ? from[row * stride_row + col * stride_col] : Element{};
        }
    }
};

template <class Operand, class Sum, int BM, int BN, int BK, int WARPS_M, int WARPS_N, class LayoutA, class LayoutB, class Out,
          bool VECTOR>
__global__ void __launch_bounds__(32 * WARPS_M * WARPS_N, VECTOR ? 16 / (WARPS_M * WARPS_N) : 1)  // 128 registers a thread
tiled(const typename Operand::Element* __restrict__ a, const typename Operand::Element* __restrict__ b,
      const Out* __restrict__ c, const Out* __restrict__ bias, Out* __restrict__ out, int M, int N, int K, Scalar<Sum> alpha,
      Scalar<Sum> beta, int activation, Strides stride) {
    wait_for_earlier_kernels();
    using Element = typename Operand::Element;
    constexpr int THREADS = 32 * WARPS_M * WARPS_N;
    constexpr int F = Operand::K == 4 ? 8 : 16;  // fragments are F x F: 8 x 8 x 4 of double, else 16 x 16 x 16 or 8
    constexpr int WM = BM / WARPS_M, WN = BN / WARPS_N, FM = WM / F, FN = WN / F;
    // Unrolled, a step's fragments are loaded while the previous ones are multiplied. Only 16-bit types leave enough registers,
    // and not on sm_75.
#if __CUDA_ARCH__ == 750
    constexpr int UNROLL = 1;
#else
    constexpr int UNROLL = sizeof(Element) == 2 ? BK / Operand::K : 1;
#endif
    static_assert(BM % (WARPS_M * F) == 0 && BN % (WARPS_N * F) == 0 && BK % Operand::K == 0, "fragments cover the slices");
    using ATile = SkewedTile<Element, BM, BK, LayoutA, std::is_same<LayoutA, row_major>::value, THREADS>;
    using BTile = SkewedTile<Element, BK, BN, LayoutB, std::is_same<LayoutB, col_major>::value, THREADS>;
    __shared__ ATile a_tile;
    __shared__ BTile b_tile;
    __shared__ __align__(32) Sum fragment_tile[WARPS_M * WARPS_N][F][F];

    const int tiles_m = ceil_div(M, BM), tiles_n = ceil_div(N, BN);
    const int tile = blockIdx.x % (tiles_m * tiles_n), batch = blockIdx.x / (tiles_m * tiles_n);
    const int first_row = tile / tiles_n * BM, first_col = tile % tiles_n * BN;
    const int warp = threadIdx.x / 32, row = warp / WARPS_N * WM, col = warp % WARPS_N * WN;  // of the warp tile in the block's
    a += batch * stride.a.batch + first_row * stride.a.row;
    b += batch * stride.b.batch + first_col * stride.b.col;

    uint4 a_next[ATile::VECTORS], b_next[BTile::VECTORS];
    const auto fetch = [&](int k_left) {
        ATile::fetch(a_next, a, M - first_row, k_left, ATile::BY_ROWS ? stride.a.row : stride.a.col);
        BTile::fetch(b_next, b, k_left, N - first_col, BTile::BY_ROWS ? stride.b.row : stride.b.col);
    };
    Accumulator<Operand, F, F, Sum> sum[FM][FN];
#pragma unroll
    for (int i = 0; i < FM * FN; ++i) nvcuda::wmma::fill_fragment(sum[i / FN][i % FN], Sum(0));

    if (VECTOR) fetch(K);
    for (int k_left = K; k_left > 0; k_left -= BK) {
        if (VECTOR) {
            a_tile.put(a_next);
            b_tile.put(b_next);
        } else {
            a_tile.fill(a, M - first_row, k_left, stride.a.row, stride.a.col);
            b_tile.fill(b, k_left, N - first_col, stride.b.row, stride.b.col);
        }
        a += BK * stride.a.col;
        b += BK * stride.b.row;
        __syncthreads();  // the slice is complete
        if (VECTOR) fetch(k_left - BK);  // past K: zeros
#pragma unroll UNROLL
        for (int step = 0; step < BK; step += Operand::K) {
            FragmentA<Operand, F, F, LayoutA> a_fragment[FM];
#pragma unroll
            for (int m = 0; m < FM; ++m) load<Operand>(a_fragment[m], a_tile.at(row + m * F, step), ATile::PITCH);
#pragma unroll
            for (int n = 0; n < FN; ++n) {
                FragmentB<Operand, F, F, LayoutB> b_fragment;
                load<Operand>(b_fragment, b_tile.at(step, col + n * F), BTile::PITCH);
#pragma unroll
                for (int m = 0; m < FM; ++m) multiply_add<Operand, false>(sum[m][n], a_fragment[m], b_fragment);
            }
        }
        __syncthreads();  // all threads have read the slice: the next may overwrite it
    }

    const Epilogue<Sum, Out> epilogue(c, bias, out, alpha, beta, activation, stride, batch);
    Sum(&mine)[F][F] = fragment_tile[warp];
#pragma unroll 1  // one copy of the epilogue's code, not FM * FN
    for (int f = 0; f < FM * FN; ++f) {
#pragma unroll
        for (int i = 0; i < FM * FN; ++i)
            if (i == f) nvcuda::wmma::store_matrix_sync(&mine[0][0], sum[i / FN][i % FN], F, nvcuda::wmma::mem_row_major);
        __syncwarp();
        for (int i = threadIdx.x % 32; i < F * F; i += 32) {
            const int to_row = first_row + row + f / FN * F + i / F, to_col = first_col + col + f % FN * F + i % F;
            if (to_row < M && to_col < N) epilogue.store(mine[i / F][i % F], to_row, to_col);
        }
        __syncwarp();
    }
}

}  // namespace matmul
