// Copies of slices whose rows begin anywhere: every second row of 50257 columns of 16 bits begins within a word of 4 bytes, which no
// cp.async reads, and only every eighth at a chunk of 16, as copies of few instructions want.
//
// cp.async copies the whole chunks in which a row of a slice lies, as they are in memory, to a slot of shared memory: one chunk more
// than the row has. When they have landed, each thread reads a few neighbouring chunks of the slot, shifts them by as many bytes as
// the row begins within its first one, and stores them to the tile. That is a second way through shared memory, while the products
// of the slice before run; but slices are on their way without registers, several at a time.
//
// An aligned copy of the whole operand, to be read by cp.async or TMA, would write and read it once more. That is nothing beside
// many products of each element, and twice the time where there are few.
#pragma once
#include "swizzled_tile.cuh"

namespace matmul {

// As TileCopies, but what `copy` asks for `shift` brings to a tile later, once it has landed and the block has met. Slices are copied
// and shifted in the same order; there are SLOTS of them at a time.
template <class Tile, int THREADS, int PARTS, int SLOTS> struct ShiftedCopies {
    using T = typename Tile::Element;
    static constexpr bool PAST_REGISTERS = true;
    static constexpr int LENGTH = Tile::CHUNK, CHUNKS = Tile::CHUNKS;                     // elements of a chunk; chunks of a row
    static constexpr int PITCH = 16 * (CHUNKS + 1), SLOT = Tile::ROWS * PITCH;            // bytes
    static constexpr int COUNT = Tile::ROWS * CHUNKS / THREADS, STEP = THREADS / CHUNKS;  // of a thread; rows apart
    static_assert(COUNT * STEP == Tile::ROWS && STEP * CHUNKS == THREADS, "a thread stays in its column of chunks");
    // Chunks that a thread shifts together, as one more is read. Eight lanes then have all banks: rows are four words further on.
    static constexpr int MOST = CHUNKS < 4 ? CHUNKS : 4, RUN = COUNT < MOST ? COUNT : MOST;
    static constexpr int RUNS = COUNT / RUN, OF_ROW = CHUNKS / RUN, ROWS_APART = THREADS / OF_ROW;

    const T* from;  // the beginning of the first row in the next slice
    int64_t pitch;  // of rows
    int inside;     // rows (K_MAJOR) or elements of the matrix from there on
    const T* end;   // of the matrix
    unsigned char* slots;
    int filled = 0, read = 0;  // the next slot to be filled, and shifted

    __device__ __forceinline__ ShiftedCopies(const T* matrix, int first, int span, int64_t span_stride, int64_t k_stride)
        : from(matrix + first * span_stride), pitch(Tile::K_MAJOR ? span_stride : k_stride), inside(span - first) {}

    // Copies the slice that begins at first_k, of which K - first_k are in the matrix. There is one plane.
    __device__ __forceinline__ void copy_tail(T*, int first_k, int K, int64_t) {
        end = from + ((Tile::K_MAJOR ? inside : K) - 1) * pitch + (Tile::K_MAJOR ? K : inside);
        const T* const next = from;
        from += first_k * (Tile::K_MAJOR ? 1 : pitch);
        fill<true>(0, 1, K - first_k);
        from = next;
        filled = 1 % SLOTS;
    }

    // A part of the next slice, which must lie inside K.
    __device__ __forceinline__ void copy(T*, int part, int64_t) const { fill<false>(part, PARTS, Tile::DEPTH); }

    __device__ __forceinline__ void advance() {
        from += Tile::DEPTH * (Tile::K_MAJOR ? 1 : pitch);
        filled = filled + 1 == SLOTS ? 0 : filled + 1;
    }

    // Stores the tile of the slice that begins at first_k, with zeros from K on.
    __device__ __forceinline__ void shift_tail(T* tile, int first_k, int K) {
#pragma unroll
        for (int part = 0; part < PARTS; ++part) shift<true>(tile, part, K - first_k);
    }

    // A part of the tile of the next slice.
    template <bool TAIL = false> __device__ __forceinline__ void shift(T* tile, int part, int left = 0) {
#pragma unroll
        for (int i = 0; i < RUNS; ++i) {
            if (i * PARTS / RUNS != part) continue;
            const int row = threadIdx.x / OF_ROW + i * ROWS_APART, chunk = threadIdx.x % OF_ROW * RUN;
            const auto* const slot = reinterpret_cast<const uint4*>(slots + read * SLOT + row * PITCH) + chunk;
            unsigned words[4 * (RUN + 1)];
#pragma unroll
            for (int j = 0; j <= RUN; ++j) {
                const uint4 bits = slot[j];
                words[4 * j] = bits.x, words[4 * j + 1] = bits.y, words[4 * j + 2] = bits.z, words[4 * j + 3] = bits.w;
            }
            shift_words(words, unsigned(reinterpret_cast<uintptr_t>(line(row))) % 16);
#pragma unroll
            for (int j = 0; j < RUN; ++j) {
                if (TAIL) {
                    const int valid = Tile::K_MAJOR ? left - (chunk + j) * LENGTH : row < left ? LENGTH : 0;
#pragma unroll
                    for (int word = 0; word < 4; ++word) clear(words[4 * j + word], valid * int(sizeof(T)) - 4 * word);
                }
                *reinterpret_cast<uint4*>(tile + Tile::at(row, chunk + j)) =
                    make_uint4(words[4 * j], words[4 * j + 1], words[4 * j + 2], words[4 * j + 3]);
            }
        }
        if (part == PARTS - 1) read = read + 1 == SLOTS ? 0 : read + 1;
    }

  private:
    // The beginning of a row of the next slice. Of rows past the edge (K_MAJOR) the last one again, which is in no sum that is stored.
    __device__ __forceinline__ const T* line(int row) const { return from + (Tile::K_MAJOR ? min(row, inside - 1) : row) * pitch; }

    // A part of a slice, of which so many of k are left.
    template <bool TAIL> __device__ __forceinline__ void fill(int part, int parts, int left) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (i * parts / COUNT == part) fill_chunk<TAIL>(threadIdx.x / CHUNKS + i * STEP, threadIdx.x % CHUNKS, left);
        if (part == parts - 1)
#pragma unroll
            for (int row = threadIdx.x; row < Tile::ROWS; row += THREADS) fill_chunk<TAIL>(row, CHUNKS, left);
    }

    // The last chunks of the matrix, of which memory may end within, come by ordinary loads. Those after a row's end are not copied;
    // nor is one more, where a row begins at a chunk.
    template <bool TAIL> __device__ __forceinline__ void fill_chunk(int row, int chunk, int left) const {
        if (TAIL && !Tile::K_MAJOR && row >= left) return;
        const T *const begin = line(row), *const element = begin + chunk * LENGTH;
        const T* const first = element - unsigned(reinterpret_cast<uintptr_t>(element)) % 16 / sizeof(T);
        if (chunk == CHUNKS && first == element) return;
        if ((TAIL || !Tile::K_MAJOR) && first >= begin + (Tile::K_MAJOR ? left : inside)) return;
        unsigned char* const to = slots + filled * SLOT + row * PITCH + chunk * 16;
        if (first + LENGTH <= end) {
            cp_async<16>(to, first);
        } else {
#pragma unroll 1
            for (int i = 0; i < end - first; ++i) reinterpret_cast<T*>(to)[i] = first[i];
        }
    }

    // Each becomes the one that begins so many bytes later. Lines that are aligned to pieces begin at a multiple of them.
    __device__ __forceinline__ static void shift_words(unsigned (&words)[4 * (RUN + 1)], unsigned bytes) {
        if (Tile::PIECE <= 8)
#pragma unroll
            for (int i = 0; i < 4 * RUN + 2; ++i) words[i] = bytes & 8 ? words[i + 2] : words[i];
        if (Tile::PIECE <= 4)
#pragma unroll
            for (int i = 0; i < 4 * RUN + 1; ++i) words[i] = bytes & 4 ? words[i + 1] : words[i];
        if (Tile::PIECE <= 2)
#pragma unroll
            for (int i = 0; i < 4 * RUN; ++i) words[i] = __funnelshift_r(words[i], words[i + 1], bytes % 4 * 8);
    }

    // All but the first `valid` bytes.
    __device__ __forceinline__ static void clear(unsigned& word, int valid) {
        word = valid >= 4 ? word : valid <= 0 ? 0 : word & ((1u << 8 * valid) - 1);
    }
};

#ifndef LEAST_PIECE
#define LEAST_PIECE 4
#endif
// How slices of an operand are copied that lies in pieces of so many bytes.
template <class Tile, int THREADS, int PARTS, int SLOTS>
using Copies = std::conditional_t<Tile::PIECE >= LEAST_PIECE, TileCopies<Tile, THREADS, PARTS>, ShiftedCopies<Tile, THREADS, PARTS, SLOTS>>;

template <class Copies> constexpr bool SHIFTS = false;
template <class Tile, int THREADS, int PARTS, int SLOTS> constexpr bool SHIFTS<ShiftedCopies<Tile, THREADS, PARTS, SLOTS>> = true;

}  // namespace matmul
