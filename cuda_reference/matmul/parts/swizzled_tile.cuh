// An operand's slices in shared memory: copied by cp.async without registers, read as fragments by ldmatrix.
//
// A slice has the layout of its operand. K_MAJOR: a row per row of A (or column of B), BK long; else: a row per k, SPAN long.
// ldmatrix reads a chunk of 16 bytes from each of 8 rows at a time, cp.async writes 8 chunks of one row or two, and both should
// use all 32 banks. So chunk c of the 8 in 128 bytes is stored at c XOR row: no padding, and no bank conflicts.
#pragma once
#include "../../common/cp_async.cuh"
#include "../../common/ldmatrix.cuh"

namespace matmul {

// PIECE: bytes that the operand's rows are aligned to, up to a chunk.
template <class T, bool OF_A, int SPAN, int BK, bool K_MAJOR_, int PIECE_ = 16> struct SwizzledTile {
    using Element = T;
    static constexpr bool K_MAJOR = K_MAJOR_;
    static constexpr int PIECE = PIECE_;
    static_assert(K_MAJOR || sizeof(T) == 2, "ldmatrix transposes elements of 16 bits only");
    static constexpr int CHUNK = 16 / sizeof(T);                           // elements
    static constexpr int ROWS = K_MAJOR ? SPAN : BK;
    static constexpr int CHUNKS = (K_MAJOR ? BK : SPAN) / CHUNK;           // per row
    static constexpr int PITCH = CHUNKS * CHUNK, SIZE = ROWS * PITCH;      // elements
    static constexpr int NEAR = CHUNKS < 8 ? CHUNKS : 8;                   // chunks of a row in 128 bytes
    static constexpr int DEPTH = BK;
    static_assert((CHUNKS & (CHUNKS - 1)) == 0 && CHUNKS > 1, "XOR permutes powers of two");

    __device__ __forceinline__ static int at(int row, int chunk) {
        return row * PITCH + (chunk ^ row / (8 / NEAR) % NEAR) * CHUNK;
    }

    // The offset of this lane's row of a fragment: 16 rows of A or columns of B from `first` on, 32 bytes of k. The four
    // matrices of ldmatrix are in the order of 8-row halves first for A, of 16-byte halves first for B: an mma needs B's words
    // of 8 columns in consecutive registers.
    __device__ __forceinline__ static int fragment(int first) {
        const int lane = threadIdx.x % 32;
        const int row = OF_A == K_MAJOR ? lane % 16 : lane % 8 + lane / 16 * 8;
        const int chunk = OF_A == K_MAJOR ? lane / 16 : lane / 8 % 2;
        return K_MAJOR ? at(first + row, chunk) : at(row, first / CHUNK + chunk);
    }

    // Loads the fragment i * 16 rows or columns and k * 32 bytes further. XOR adds here, since those bits of the chunk are 0 in
    // `fragment`.
    __device__ __forceinline__ static void load(unsigned (&words)[4], const T* tile, int fragment, int i, int k) {
        const int along = K_MAJOR ? k : i, down = K_MAJOR ? i : k;
        ldmatrix<!K_MAJOR>(words, tile + (fragment ^ along * 2 * CHUNK) + down * 16 * PITCH);
    }
};

// The pieces of each slice that one thread copies, one cp.async each, in PARTS: chunks, or less where rows are aligned to less.
// Rows must be contiguous and not overlap; a row's last piece may reach into the gap before the next row.
// Nothing is copied past the edges of M and N: no sum that is stored needs it.
template <class Tile, int THREADS, int PARTS> struct TileCopies {
    using T = typename Tile::Element;
    static constexpr bool PAST_REGISTERS = true;
    static constexpr int LENGTH = Tile::PIECE / sizeof(T), PIECES = Tile::PITCH / LENGTH;    // elements; per row
    static constexpr int COUNT = Tile::ROWS * PIECES / THREADS, STEP = THREADS / PIECES;  // rows apart
    static_assert(COUNT * STEP == Tile::ROWS && STEP * PIECES == THREADS, "a thread stays in its column of pieces");

    const T* from;  // the first piece in the next slice
    int64_t pitch;  // of rows
    int inside;     // rows (K_MAJOR) or elements of the matrix from the first piece on

    __device__ __forceinline__ static int row() { return threadIdx.x / PIECES; }
    __device__ __forceinline__ static int column() { return threadIdx.x % PIECES * LENGTH; }
    __device__ __forceinline__ static T* place(T* tile, int i) {
        return tile + Tile::at(row() + i * STEP, column() / Tile::CHUNK) + column() % Tile::CHUNK;
    }

    __device__ __forceinline__ TileCopies(const T* matrix, int first, int span, int64_t span_stride, int64_t k_stride) {
        pitch = Tile::K_MAJOR ? span_stride : k_stride;
        inside = span - first - (Tile::K_MAJOR ? row() : column());
        from = matrix + first * span_stride + row() * pitch + column();
    }

    // Copies the slice that begins at first_k, with zeros from K on, which add nothing to a sum. `plane` is the offset of the
    // matrix from the first plane.
    __device__ __forceinline__ void copy_tail(T* tile, int first_k, int K, int64_t plane) const {
        const T* const slice = from + plane + first_k * (Tile::K_MAJOR ? 1 : pitch);
        const int left = K - first_k - (Tile::K_MAJOR ? column() : row());
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const bool some = Tile::K_MAJOR ? i * STEP < inside : i * STEP < left;
            const int valid = some ? max(min(Tile::K_MAJOR ? left : inside, LENGTH), 0) : 0;
            cp_async<Tile::PIECE>(place(tile, i), slice + i * STEP * pitch, valid * int(sizeof(T)));
        }
    }

    // Copies a part of the next slice, which must lie inside K.
    __device__ __forceinline__ void copy(T* tile, int part, int64_t plane) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (i * PARTS / COUNT == part && (Tile::K_MAJOR ? i * STEP : 0) < inside)
                cp_async<Tile::PIECE>(place(tile, i), from + plane + i * STEP * pitch);
    }

    __device__ __forceinline__ void advance() { from += Tile::DEPTH * (Tile::K_MAJOR ? 1 : pitch); }
};

}  // namespace matmul
