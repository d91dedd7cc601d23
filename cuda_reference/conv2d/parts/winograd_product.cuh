// The products of `winograd`: out (batch, M, N) = A (batch, M, K) B (batch, K, N), a matrix product per point and group.
//
// All three are workspaces of the design, which keeps the kernel short: rows are contiguous, N is padded to a multiple of 128
// bits with anything. Slices of A and B are copied by cp.async, STAGES of them in shared memory; A is transposed on the way in
// words of 4 bytes (gemm/async_copy.cuh has the reasons). M and K may be any size: elements outside read as zero and are not
// stored.
#pragma once
#include <cstring>

#include "../../common/cp_async.cuh"
#include "../../common/index.cuh"
#include "../../common/overlap.cuh"
#include "../../gemm/parts/tile_io.cuh"  // outer_product

namespace conv2d {

template <class S, int BM, int BN, int BK, int TM, int TN> struct ProductSlice {
    static constexpr int PIECE = 16 / sizeof(S);  // elements of 128 bits
    static constexpr int PITCH = BM + PIECE;      // of A's rows along M: copies of 8 k of 4 rows go to 32 banks
    static constexpr int THREADS = (BM / TM) * (BN / TN);

    alignas(16) S a[BK * PITCH];
    alignas(16) S b[BK * BN];
};

// What a thread copies of one slice after the other.
template <class S, int BM, int BN, int BK, int TM, int TN> struct ProductCopies {
    using Slices = ProductSlice<S, BM, BN, BK, TM, TN>;
    static constexpr int PIECE = Slices::PIECE, THREADS = Slices::THREADS;
    static constexpr int A_STEP = THREADS / 8, B_STEP = THREADS / (BN / PIECE);  // rows of A, of B
    static_assert(BM % A_STEP == 0 && BK == 8, "8 threads copy 8 elements of a row of A");
    static_assert(THREADS % (BN / PIECE) == 0 && BK % B_STEP == 0, "every thread copies the same number of pieces of B");

    const S *from_a, *from_b;  // of the next slice
    int rows, columns;         // of A, of B, from the thread's first on
    int left;                  // of K
    int64_t K, N;

    __device__ __forceinline__ static int k_of_a() { return threadIdx.x % 8; }
    __device__ __forceinline__ static int k_of_b() { return threadIdx.x / (BN / PIECE); }
    __device__ __forceinline__ static int row() { return threadIdx.x / 8; }
    __device__ __forceinline__ static int col() { return threadIdx.x % (BN / PIECE) * PIECE; }

    __device__ __forceinline__ ProductCopies(const S* a, const S* b, int first_row, int first_col, int M, int N, int K)
        : from_a(a + int64_t(first_row + row()) * K + k_of_a()),
          from_b(b + int64_t(k_of_b()) * N + first_col + col()),
          rows(M - first_row - row()),
          columns(N - first_col - col()),
          left(K),
          K(K),
          N(N) {}

    // The next slice; zeros where it sticks out of the matrices.
    __device__ __forceinline__ void copy(Slices& to) {
#pragma unroll
        for (int i = 0; i < BM; i += A_STEP)
#pragma unroll
            for (int word = 0; word < int(sizeof(S) / 4); ++word)
                cp_async<4>(reinterpret_cast<float*>(to.a + k_of_a() * Slices::PITCH + row() + i) + word,
                            reinterpret_cast<const float*>(from_a + i * K) + word, i < rows && k_of_a() < left ? 4 : 0);
#pragma unroll
        for (int i = 0; i < BK; i += B_STEP)
            cp_async<16>(to.b + (k_of_b() + i) * BN + col(), from_b + i * N, columns > 0 && k_of_b() + i < left ? 16 : 0);
        from_a += BK, from_b += BK * N, left -= BK;
    }
};

// The T elements of a thread at one k, in pieces that begin GAP apart.
template <int GAP, class S, int T> __device__ __forceinline__ void load_pieces(S (&fragment)[T], const S* from) {
    constexpr int PIECE = 16 / sizeof(S);
#pragma unroll
    for (int i = 0; i < T; i += PIECE) {
        const uint4 bits = *reinterpret_cast<const uint4*>(from + i / PIECE * GAP);
        std::memcpy(fragment + i, &bits, sizeof bits);
    }
}

template <class S, int BM, int BN, int BK, int TM, int TN, int STAGES>
__global__ void __launch_bounds__((BM / TM) * (BN / TN))
winograd_product(const S* __restrict__ a, const S* __restrict__ b, S* __restrict__ out, int M, int N, int K) {
    wait_for_earlier_kernels();
    using Slices = ProductSlice<S, BM, BN, BK, TM, TN>;
    constexpr int PIECE = Slices::PIECE, GAP_M = BM / TM * PIECE, GAP_N = BN / TN * PIECE;
    static_assert(BM / TM % 4 == 0 && BN / TN % 8 == 0, "a warp's lanes stand 4 x 8");
    __shared__ Slices buffers[STAGES];

    const int tiles_n = ceil_div(N, BN), tiles = ceil_div(M, BM) * tiles_n;
    const int64_t batch = blockIdx.x / tiles;
    const int first_row = blockIdx.x % tiles / tiles_n * BM, first_col = blockIdx.x % tiles % tiles_n * BN;
    a += batch * M * K, b += batch * K * N, out += batch * M * N;
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = (warp / (BN / TN / 8) * 4 + lane / 8) * PIECE, col = (warp % (BN / TN / 8) * 8 + lane % 8) * PIECE;

    const int slices = ceil_div(K, BK);
    ProductCopies<S, BM, BN, BK, TM, TN> copies(a, b, first_row, first_col, M, N, K);
#pragma unroll
    for (int stage = 0; stage < STAGES - 1; ++stage) {
        if (stage < slices) copies.copy(buffers[stage]);
        cp_async_commit();  // of nothing where there is no slice, so that waits can count groups
    }
    S sum[TM][TN] = {};
    int now = 0, free = STAGES - 1;  // the stage that is read, and the free one
    for (int slice = 0; slice < slices; ++slice) {
        cp_async_wait<STAGES - 2>();
        __syncthreads();  // the slice has landed for all threads, and the previous one has been read
        if (slice + STAGES - 1 < slices) copies.copy(buffers[free]);
        cp_async_commit();
#pragma unroll
        for (int k = 0; k < BK; ++k) {
            S of_a[TM], of_b[TN];
            load_pieces<GAP_M>(of_a, buffers[now].a + k * Slices::PITCH + row);
            load_pieces<GAP_N>(of_b, buffers[now].b + k * BN + col);
            gemm::outer_product(sum, of_a, of_b);
        }
        free = now;
        now = now + 1 == STAGES ? 0 : now + 1;
    }
#pragma unroll
    for (int m = 0; m < TM; ++m) {
        const int at_row = first_row + row + m / PIECE * GAP_M + m % PIECE;
        if (at_row >= M) continue;
#pragma unroll
        for (int n = 0; n < TN; n += PIECE) {
            const int at_col = first_col + col + n / PIECE * GAP_N;
            uint4 bits;
            std::memcpy(&bits, &sum[m][n], sizeof bits);
            if (at_col < N) *reinterpret_cast<uint4*>(out + int64_t(at_row) * N + at_col) = bits;
        }
    }
}

}  // namespace conv2d
