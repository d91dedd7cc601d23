// An operand's slices in shared memory: how they come there past the registers (cp.async) and leave as fragments (ldmatrix).
//
// A slice lies as its operand does. K_MAJOR: a row per row of A (or column of B), BK deep; else: a row per k, SPAN long. ldmatrix
// reads 16 bytes, a chunk, of 8 rows at a time, cp.async writes 8 chunks of one row or two, and both want all 32 banks. So chunk
// c stands in the place of chunk c XOR row, of the 8 that make 128 bytes: no padding, and no conflict either way.
#pragma once
#include "../common/cp_async.cuh"
#include "../common/ldmatrix.cuh"

namespace matmul {

template <class T, bool OF_A, int SPAN, int BK, bool K_MAJOR_> struct SwizzledTile {
    using Element = T;
    static constexpr bool K_MAJOR = K_MAJOR_;
    static_assert(K_MAJOR || sizeof(T) == 2, "ldmatrix transposes elements of 16 bits only");
    static constexpr int CHUNK = 16 / sizeof(T);                           // elements
    static constexpr int ROWS = K_MAJOR ? SPAN : BK;
    static constexpr int CHUNKS = (K_MAJOR ? BK : SPAN) / CHUNK;           // a row
    static constexpr int PITCH = CHUNKS * CHUNK, SIZE = ROWS * PITCH;      // elements
    static constexpr int NEAR = CHUNKS < 8 ? CHUNKS : 8;                   // chunks of a row in 128 bytes
    static constexpr int DEPTH = BK;
    static_assert((CHUNKS & (CHUNKS - 1)) == 0 && CHUNKS > 1, "XOR permutes powers of two");

    __device__ __forceinline__ static int at(int row, int chunk) {
        return row * PITCH + (chunk ^ row / (8 / NEAR) % NEAR) * CHUNK;
    }

    // Where this lane reads its row of a fragment: 16 rows of A or columns of B from `first` on, 32 bytes deep. Of its four matrices,
    // A's words take the 8-row halves first, B's the 16-byte halves: an mma wants B's words of 8 columns in neighbouring registers.
    __device__ __forceinline__ static int fragment(int first) {
        const int lane = threadIdx.x % 32;
        const int row = OF_A == K_MAJOR ? lane % 16 : lane % 8 + lane / 16 * 8, chunk = OF_A == K_MAJOR ? lane / 16 : lane / 8 % 2;
        return K_MAJOR ? at(first + row, chunk) : at(row, first / CHUNK + chunk);
    }

    // The fragment i * 16 rows or columns and k * 32 bytes on. XOR adds here: `fragment` left those bits of the chunk's number 0.
    __device__ __forceinline__ static void load(unsigned (&words)[4], const T* tile, int fragment, int i, int k) {
        const int along = K_MAJOR ? k : i, down = K_MAJOR ? i : k;
        ldmatrix<!K_MAJOR>(words, tile + (fragment ^ along * 2 * CHUNK) + down * 16 * PITCH);
    }
};

// The chunks of each slice that one thread copies, in PARTS. VECTOR: a chunk is one cp.async, which wants contiguous rows, aligned
// to 16 bytes and apart, as a row's last chunk may read what stands between it and the next. Else it is gathered, whatever the
// step of its elements, in registers: start(part) loads them, finish(part) puts them down. What is past the edge of the matrix, but
// for K's, is not copied: no sum that is stored needs it.
template <class Tile, int THREADS, bool VECTOR, int PARTS> struct TileCopies {
    using T = typename Tile::Element;
    static constexpr int COUNT = Tile::ROWS * Tile::CHUNKS / THREADS, STEP = THREADS / Tile::CHUNKS;  // rows apart
    static constexpr int A_PART = (COUNT + PARTS - 1) / PARTS;
    static_assert(COUNT * THREADS == Tile::ROWS * Tile::CHUNKS, "every thread copies the same number of chunks");
    static_assert(STEP * Tile::CHUNKS == THREADS, "a thread stays in its column of chunks");

    const T* from;            // the first chunk in the next slice
    int64_t pitch, step;      // to the next row of the slice, to the next element of a row
    int inside;               // K_MAJOR: rows of the matrix from the first chunk's on; else elements
    uint4 held[A_PART];

    __device__ __forceinline__ static int row() { return threadIdx.x / Tile::CHUNKS; }
    __device__ __forceinline__ static int element() { return threadIdx.x % Tile::CHUNKS * Tile::CHUNK; }
    __device__ __forceinline__ static T* place(T* tile, int i) { return tile + Tile::at(row() + i * STEP, threadIdx.x % Tile::CHUNKS); }

    __device__ __forceinline__ TileCopies(const T* matrix, int first, int span, int64_t span_stride, int64_t k_stride) {
        pitch = Tile::K_MAJOR ? span_stride : k_stride;
        step = VECTOR ? 1 : Tile::K_MAJOR ? k_stride : span_stride;
        inside = span - first - (Tile::K_MAJOR ? row() : element());
        from = matrix + first * span_stride + row() * pitch + element() * step;
    }

    // Elements of chunk i that belong to the matrix, were K endless; may be more than there are.
    __device__ __forceinline__ int count(int i) const {
        return Tile::K_MAJOR ? (i * STEP < inside ? Tile::CHUNK : 0) : inside;
    }

    __device__ __forceinline__ const T* chunk(int i) const { return from + i * STEP * pitch; }

    // `count` elements, then zeros.
    __device__ __forceinline__ uint4 gather(const T* chunk, int count) const {
        using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>;
        constexpr int IN_WORD = 4 / sizeof(T);
        unsigned words[4] = {};
#pragma unroll
        for (int j = 0; j < Tile::CHUNK; ++j)
            if (j < count)
                words[j / IN_WORD] |= unsigned(*reinterpret_cast<const Bits*>(chunk + j * step)) << j % IN_WORD * 8 * sizeof(T);
        return make_uint4(words[0], words[1], words[2], words[3]);
    }

    // The slice that begins at first_k, zeros from K on: they add nothing to a sum.
    __device__ __forceinline__ void copy_tail(T* tile, int first_k, int K) const {
        const int64_t skipped = first_k * (Tile::K_MAJOR ? step : pitch);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int left = K - first_k - (Tile::K_MAJOR ? element() : row() + i * STEP);
            const int valid = max(min(count(i), Tile::K_MAJOR ? left : left > 0 ? Tile::CHUNK : 0), 0);
            if constexpr (VECTOR)
                cp_async<16>(place(tile, i), chunk(i) + skipped, min(valid, Tile::CHUNK) * int(sizeof(T)));
            else
                *reinterpret_cast<uint4*>(place(tile, i)) = gather(chunk(i) + skipped, valid);
        }
    }

    // A part of the next slice, all of it inside K.
    __device__ __forceinline__ void start(T* tile, int part) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (i / A_PART != part) continue;
            if constexpr (!VECTOR)
                held[i % A_PART] = gather(chunk(i), count(i));
            else if (count(i) > 0)
                cp_async<16>(place(tile, i), chunk(i));
        }
    }

    __device__ __forceinline__ void finish(T* tile, int part) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (!VECTOR && i / A_PART == part) *reinterpret_cast<uint4*>(place(tile, i)) = held[i % A_PART];
    }

    __device__ __forceinline__ void advance() { from += Tile::DEPTH * (Tile::K_MAJOR ? step : pitch); }
};

}  // namespace matmul
