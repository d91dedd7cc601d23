// Loads of slices of A and B and stores of tiles of C, shared by the designs from `rasterized` on and by matmul's cuda_cores.
//
// Operands are carried in quads, four neighbours along a row in memory; with VECTOR a quad is one 128-bit access. The
// launcher sets VECTOR only where rows are contiguous, 16-byte aligned and do not overlap; any other layout takes four
// scalar accesses a quad. A row of A or a quad of B past the edge of the matrix repeats the last one: its sums are never
// stored, and no load needs a test.
#pragma once
#include "../../common/vector.cuh"
#include "common.cuh"

namespace gemm {

// Sizes that follow from the tile sizes. The 32 lanes of a warp own a 4 x 8 grid of thread tiles: WM x WN of C.
template <int BM, int BN, int TM, int TN> struct Shape {
    // The lanes of a warp, 4 x 8 thread tiles: more across, or down, where the block tile has no more the other way.
    static constexpr int ACROSS = BN / TN < 8 ? BN / TN : BM / TM < 4 ? 32 / (BM / TM) : 8, DOWN = 32 / ACROSS;
    static constexpr int WM = DOWN * TM, WN = ACROSS * TN;
    static constexpr int THREADS = (BM / TM) * (BN / TN);
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    static_assert(TM % 4 == 0 && TN % 4 == 0, "a thread reads its fragments of A and B in quads");
    // Up to 64 sums a thread, 512 threads share an SM's 65536 registers, 128 each. The scalar path's addresses may take more, but
    // not of 256 threads: of one such block a scheduler has two warps. (On Blackwell ptxas would spill.)
    static constexpr int blocks_per_sm(bool vector) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
        return vector && TM * TN <= 64 ? 512 / THREADS : 1;
#else
        return (vector || THREADS == 256) && TM * TN <= 64 ? 512 / THREADS : 1;
#endif
    }
    // What a block reads together of the parts that it adds up: 64 registers a thread, or 32 beside more sums than that.
    static constexpr int SUMS_AT_ONCE = 32, PARTS_AT_ONCE = TM * TN > SUMS_AT_ONCE ? 1 : 64 / (TM * TN);
};

// `count` (4 or more: all) elements `step` apart, then zeros.
template <bool VECTOR> __device__ __forceinline__ float4 load_quad(const float* from, int64_t step, int count) {
    if (VECTOR && count >= 4) return *reinterpret_cast<const float4*>(from);
    return make_float4(count > 0 ? from[0] : 0.0f, count > 1 ? from[step] : 0.0f, count > 2 ? from[2 * step] : 0.0f,
                       count > 3 ? from[3 * step] : 0.0f);
}

// A block's slice in shared memory: BK rows of BM of A, transposed, or of BN of B. Where an element lies decides which banks its
// store meets.
template <int SPAN> struct PlainTile {
    static constexpr int PITCH = SPAN;
    __device__ __forceinline__ static int at(int k, int place) { return k * PITCH + place; }
};

// A block's slice of A, whose elements arrive one by one: rows 4 floats longer, so that a warp's stores meet no bank twice.
template <int BM> struct PaddedTile {
    static constexpr int PITCH = BM + 4;
    __device__ __forceinline__ static int at(int k, int row) { return k * PITCH + row; }
};

// The quads of BM x BK slices of A that one thread carries into the shared tile, where A lies transposed: Tile::at(k, row). Two
// threads share the 8 elements of a row that make a 32-byte sector; a warp takes 16 rows. If there are fewer pairs of threads than
// rows, a thread has ROWS of them.
template <class ATile, int BM, int BK, int THREADS, bool VECTOR> struct SlicesOfA {
    using Tile = ATile;
    static constexpr int PAIRS = THREADS / 2, ROWS = BM > PAIRS ? BM / PAIRS : 1;
    static_assert(BM * BK % (4 * THREADS) == 0, "every thread carries the same number of quads");
    static_assert(BM % 16 == 0 && (PAIRS % BM == 0 || BM % PAIRS == 0), "a warp takes 16 rows, a thread stays in its own");
    static constexpr int QUADS = BM * BK / 4 / THREADS;
    static constexpr int STEP = PAIRS > BM ? PAIRS / BM * 8 : 8;  // of k from quad to quad of a row

    const float* from[ROWS];  // the first quad of each row in the next slice
    int64_t step;

    __device__ __forceinline__ static int row(int i) { return threadIdx.x / 2 % BM + i % ROWS * PAIRS; }
    __device__ __forceinline__ static int k(int i) { return threadIdx.x / 2 / BM * 8 + threadIdx.x % 2 * 4 + i / ROWS * STEP; }

    __device__ __forceinline__ SlicesOfA(const float* a, int first_row, int M, const MatrixStrides& stride)
        : step(VECTOR ? 1 : stride.col) {
#pragma unroll
        for (int i = 0; i < ROWS; ++i) from[i] = a + min(first_row + row(i), M - 1) * stride.row + k(0) * step;
    }

    // The next slice, all of it inside K.
    __device__ __forceinline__ void fetch(float4 (&quads)[QUADS]) {
#pragma unroll
        for (int i = 0; i < QUADS; ++i) quads[i] = load_quad<VECTOR>(from[i % ROWS] + i / ROWS * STEP * step, step, 4);
#pragma unroll
        for (int i = 0; i < ROWS; ++i) from[i] += BK * step;
    }

    // The slice that begins at first_k, zeros from K on: they add nothing to a sum.
    __device__ __forceinline__ void fetch_tail(float4 (&quads)[QUADS], int first_k, int K) const {
#pragma unroll
        for (int i = 0; i < QUADS; ++i)
            quads[i] = load_quad<VECTOR>(from[i % ROWS] + (first_k + i / ROWS * STEP) * step, step, K - first_k - k(i));
    }

    __device__ __forceinline__ static void put(float* tile, const float4 (&quads)[QUADS]) {
#pragma unroll
        for (int i = 0; i < QUADS; ++i) {
            tile[Tile::at(k(i), row(i))] = quads[i].x;
            tile[Tile::at(k(i) + 1, row(i))] = quads[i].y;
            tile[Tile::at(k(i) + 2, row(i))] = quads[i].z;
            tile[Tile::at(k(i) + 3, row(i))] = quads[i].w;
        }
    }
};

// The same for BK x BN slices of B, which lie in the shared tile as they stand. A warp takes 128 neighbouring columns of a row.
template <int BN, int BK, int THREADS, bool VECTOR> struct SlicesOfB {
    using Tile = PlainTile<BN>;
    static_assert(BN * BK % (4 * THREADS) == 0, "every thread carries the same number of quads");
    static_assert(THREADS % (BN / 4) == 0, "a thread stays in its columns");
    static constexpr int QUADS = BN * BK / 4 / THREADS;
    static constexpr int STEP = THREADS / (BN / 4);  // of k from quad to quad

    const float* from;    // the first quad of the next slice
    int64_t step, pitch;  // to the next element, to the next row
    int columns;          // of N, from the quad's first on

    __device__ __forceinline__ static int col() { return threadIdx.x % (BN / 4) * 4; }
    __device__ __forceinline__ static int k(int i) { return threadIdx.x / (BN / 4) + i * STEP; }

    __device__ __forceinline__ SlicesOfB(const float* b, int first_col, int N, const MatrixStrides& stride)
        : step(VECTOR ? 1 : stride.col), pitch(stride.row) {
        const int col_in_b = min(first_col + col(), (N - 1) / 4 * 4);
        columns = N - col_in_b;
        from = b + k(0) * pitch + col_in_b * step;
    }

    // The next slice, which must not hold the last row of B: a 128-bit load of a row's last quad may read what stands between
    // that row and the next (into columns that are never stored), but behind the last row there may be nothing.
    __device__ __forceinline__ void fetch(float4 (&quads)[QUADS]) {
#pragma unroll
        for (int i = 0; i < QUADS; ++i) quads[i] = load_quad<VECTOR>(from + i * STEP * pitch, step, VECTOR ? 4 : columns);
        from += BK * pitch;
    }

    __device__ __forceinline__ void fetch_tail(float4 (&quads)[QUADS], int first_k, int K) const {
#pragma unroll
        for (int i = 0; i < QUADS; ++i)
            quads[i] = load_quad<VECTOR>(from + (first_k + i * STEP) * pitch, step, first_k + k(i) < K ? columns : 0);
    }

    __device__ __forceinline__ static void put(float* tile, const float4 (&quads)[QUADS]) {
#pragma unroll
        for (int i = 0; i < QUADS; ++i) *reinterpret_cast<float4*>(&tile[k(i) * BN + col()]) = quads[i];
    }
};

// T elements of a shared tile, in quads that begin GAP apart.
template <int T, int GAP> __device__ __forceinline__ void load_fragment(float (&fragment)[T], const float* from) {
#pragma unroll
    for (int i = 0; i < T; i += 4) {
        const float4 quad = *reinterpret_cast<const float4*>(from + i / 4 * GAP);
        fragment[i] = quad.x, fragment[i + 1] = quad.y, fragment[i + 2] = quad.z, fragment[i + 3] = quad.w;
    }
}

// To and fro along the thread tile's shorter side, so that every FFMA shares a factor with the one before, which its scheduler
// then takes from the reuse cache: an FFMA that reads three registers takes longer. Row by row ptxas lets one in four read three.
template <class T, int TM, int TN>
__device__ __forceinline__ void outer_product(T (&sum)[TM][TN], const T (&a)[TM], const T (&b)[TN]) {
    constexpr int SHORT = TM < TN ? TM : TN, LONG = TM < TN ? TN : TM;
#pragma unroll
    for (int i = 0; i < LONG; ++i)
#pragma unroll
        for (int j = 0; j < SHORT; ++j) {
            const int turned = i % 2 ? SHORT - 1 - j : j, m = TM <= TN ? turned : i, n = TM <= TN ? i : turned;
            sum[m][n] += a[m] * b[n];
        }
}

__device__ __forceinline__ bool in_quads(const float* matrix, MatrixStrides stride) {
    return stride.col == 1 && stride.row % 4 == 0 && is_aligned16(matrix);
}

// out = alpha * sum + beta * C at one element. c is null where beta is 0, so that C (NaN too) is never read.
__device__ __forceinline__ void store_element(
    float sum, const float* c, float* out, int row, int col, float alpha, float beta, const Strides& stride) {
    float result = alpha * sum;
    if (c != nullptr) result += beta * c[row * stride.c.row + col * stride.c.col];
    out[row * stride.out.row + col * stride.out.col] = result;
}

// The thread's sums into out, its quads GAP_M rows and GAP_N columns apart; 128 bits at a time where out and C allow.
template <int GAP_M, int GAP_N, int TM, int TN>
__device__ __forceinline__ void store_tile(const float (&sum)[TM][TN], const float* c, float* out, int first_row, int first_col,
                                           int M, int N, float alpha, float beta, const Strides& stride) {
    const bool vector = in_quads(out, stride.out) && (c == nullptr || in_quads(c, stride.c));
#pragma unroll
    for (int m = 0; m < TM; ++m) {
        const int row = first_row + m / 4 * GAP_M + m % 4;
        if (row >= M) break;
#pragma unroll
        for (int n = 0; n < TN; n += 4) {
            const int col = first_col + n / 4 * GAP_N;
            if (vector && col + 3 < N) {
                const float* s = &sum[m][n];
                float4 quad = make_float4(alpha * s[0], alpha * s[1], alpha * s[2], alpha * s[3]);
                if (c != nullptr) {
                    const float4 old = *reinterpret_cast<const float4*>(c + row * stride.c.row + col);
                    quad.x += beta * old.x, quad.y += beta * old.y, quad.z += beta * old.z, quad.w += beta * old.w;
                }
                *reinterpret_cast<float4*>(out + row * stride.out.row + col) = quad;
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j)
                    if (col + j < N) store_element(sum[m][n + j], c, out, row, col + j, alpha, beta, stride);
            }
        }
    }
}

}  // namespace gemm
