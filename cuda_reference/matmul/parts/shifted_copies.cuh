// Copies of slices of 16-bit elements whose rows begin anywhere: every second row of 50257 columns begins within a word of 4
// bytes, which no cp.async reads. So they go through registers, where the halves of neighbouring words are put together.
//
// An aligned copy of the whole operand, to be read by cp.async or TMA, would write and read it once more. That is nothing beside
// many products of each element, and twice the time where there are few.
#pragma once
#include "swizzled_tile.cuh"

namespace matmul {

// As TileCopies: chunks of 16 bytes. The first of PARTS asks for all words of a slice, and nothing waits for them until they are
// stored after the last one: without branches between them the loads of a thread are all under way together.
template <class Tile, int THREADS, int PARTS> struct ShiftedCopies {
    using T = typename Tile::Element;
    static_assert(sizeof(T) == 2, "elements of 4 bytes are copied by cp.async, those of one are copied before");
    static constexpr bool PAST_REGISTERS = false;
    static constexpr int LENGTH = Tile::CHUNK, CHUNKS = Tile::CHUNKS;                     // elements; per row
    static constexpr int COUNT = Tile::ROWS * CHUNKS / THREADS, STEP = THREADS / CHUNKS;  // rows apart
    static_assert(COUNT * STEP == Tile::ROWS && STEP * CHUNKS == THREADS, "a thread stays in its column of chunks");

    const T* from;  // the first chunk in the next slice
    int64_t pitch;  // of rows
    int inside;     // rows (K_MAJOR) or elements of the matrix from the first chunk on
    unsigned held[COUNT][5];

    __device__ __forceinline__ static int row() { return threadIdx.x / CHUNKS; }
    __device__ __forceinline__ static int column() { return threadIdx.x % CHUNKS * LENGTH; }

    __device__ __forceinline__ ShiftedCopies(const T* matrix, int first, int span, int64_t span_stride, int64_t k_stride) {
        pitch = Tile::K_MAJOR ? span_stride : k_stride;
        inside = span - first - (Tile::K_MAJOR ? row() : column());
        from = matrix + first * span_stride + row() * pitch + column();
    }

    // Of rows past the edge (K_MAJOR) the last one again, which is in no sum that is stored.
    __device__ __forceinline__ const T* elements(int i) const {
        return from + (Tile::K_MAJOR ? min(i * STEP, inside - 1) : i * STEP) * pitch;
    }

    __device__ __forceinline__ static bool within_a_word(const T* element) { return reinterpret_cast<uintptr_t>(element) % 4 != 0; }

    // One by one, the first `valid` of them, then zeros.
    __device__ __forceinline__ static uint4 singly(const T* elements, int valid) {
        const auto* const halves = reinterpret_cast<const unsigned short*>(elements);
        const auto half = [&](int i) { return i < valid ? unsigned(halves[i]) : 0u; };
        const auto word = [&](int i) { return half(2 * i) | half(2 * i + 1) << 16; };
        return make_uint4(word(0), word(1), word(2), word(3));
    }

    __device__ __forceinline__ static void store(T* tile, int i, uint4 chunk) {
        *reinterpret_cast<uint4*>(tile + Tile::at(row() + i * STEP, column() / LENGTH)) = chunk;
    }

    // Copies the slice that begins at first_k, with zeros from K on. There is one plane.
    __device__ __forceinline__ void copy_tail(T* tile, int first_k, int K, int64_t) const {
        const int64_t ahead = first_k * (Tile::K_MAJOR ? 1 : pitch);
        const int left = K - first_k - (Tile::K_MAJOR ? column() : row());
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            store(tile, i, singly(elements(i) + ahead, Tile::K_MAJOR ? left : i * STEP < left ? inside : 0));
    }

    // Asks for the next slice, which must lie inside K and not reach its end. So where a chunk has an element of the matrix at the
    // end of its row, another one follows in memory, and the word that both are in is the matrix's.
    __device__ __forceinline__ void copy(T*, int part, int64_t) {
        if (part != 0) return;
        const int some = Tile::K_MAJOR ? LENGTH : min(LENGTH, inside);
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const int within = within_a_word(elements(i));
            const auto* const words = reinterpret_cast<const unsigned*>(elements(i) - within);
#pragma unroll
            for (int word = 0; word < 5; ++word)
                held[i][word] = max(2 * word - within, 0) < some ? words[word] : 0;
        }
    }

    __device__ __forceinline__ void put(T* tile, int part) const {
        if (part != PARTS - 1) return;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            const bool within = within_a_word(elements(i));
            const auto joined = [&](int word) { return within ? held[i][word] >> 16 | held[i][word + 1] << 16 : held[i][word]; };
            store(tile, i, make_uint4(joined(0), joined(1), joined(2), joined(3)));
        }
    }

    __device__ __forceinline__ void advance() { from += Tile::DEPTH * (Tile::K_MAJOR ? 1 : pitch); }
};

// How slices of an operand are copied that lies in pieces of so many bytes.
template <class Tile, int THREADS, int PARTS>
using Copies = std::conditional_t<Tile::PIECE >= 4, TileCopies<Tile, THREADS, PARTS>, ShiftedCopies<Tile, THREADS, PARTS>>;

}  // namespace matmul
