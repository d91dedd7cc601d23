// The patches of a convolution, or its filters, copied into rows of a matrix (operations/conv2d/unfolded.py). Both in one launch:
// the second copy would wait for the last block of the first.
//
// A block copies 8 KB, some columns of some rows, by words of up to 16 bytes: lanes go along rows, and over as many rows as runs
// of the image are short. What is left of the sectors of a run is read for the next rows by the same block, from L1. A thread
// has up to 8 loads under way. Mirrors tritonkernels/language/unfolded.py.
#pragma once
#include "../../common/index.cuh"
#include "../../common/overlap.cuh"
#include "splits.cuh"

namespace conv2d {

constexpr int UNFOLD_THREADS = 128, UNFOLD_BYTES = 8192, LEAST_COLUMNS = 8;

// A copy, in words: its blocks, each of which has so many columns, a power of two; the matrix; then steps in the tensor along its
// rows (n, p, q) and its columns (x, y, z).
struct Unfold {
    int64_t blocks, of_block, rows, columns, pitch;
    int64_t P, Q, n, p, q;
    int64_t Y, Z, x, y, z;
};

template <class Word>
__device__ __forceinline__ void copy_patches(const Word* from, Word* to, const Unfold& of, unsigned block, int64_t* of_row) {
    constexpr int EACH = UNFOLD_BYTES / int(sizeof(Word)) / UNFOLD_THREADS;
    const int columns = int(of.of_block), apart = UNFOLD_THREADS / columns;  // rows that a thread's words are apart
    const unsigned across = ceil_div(int(of.columns), columns);
    const int64_t first = int64_t(block / across) * (EACH * apart), column = int64_t(block % across) * columns + threadIdx.x % columns;
    for (int i = threadIdx.x; i < EACH * apart; i += UNFOLD_THREADS) {
        const Position at(first + i, int(of.P), int(of.Q));
        of_row[i] = at.image * of.n + at.p * of.p + at.q * of.q;
    }
    __syncthreads();  // the offsets of rows are known
    if (column >= of.columns) return;
    const Position at(column, int(of.Y), int(of.Z));
    from += at.image * of.x + at.p * of.y + at.q * of.z;
    to += first * of.pitch + column;
    constexpr int AT_ONCE = EACH < 8 ? EACH : 8;
    Word loaded[AT_ONCE];
#pragma unroll 1
    for (int begin = threadIdx.x / columns; begin < EACH * apart; begin += AT_ONCE * apart) {
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {  // apart from the stores, so that these loads are under way together
            const int row = begin + i * apart;
            if (first + row < of.rows) loaded[i] = from[of_row[row]];
        }
#pragma unroll
        for (int i = 0; i < AT_ONCE; ++i) {
            const int row = begin + i * apart;
            if (first + row < of.rows) to[row * of.pitch] = loaded[i];
        }
    }
}

// One or two copies, the blocks of the first before those of the second.
template <class WordA, class WordB>
__global__ void __launch_bounds__(UNFOLD_THREADS)
unfold(const WordA* a, WordA* to_a, Unfold of_a, const WordB* b, WordB* to_b, Unfold of_b) {
    wait_for_earlier_kernels();
    constexpr int WORDS = UNFOLD_BYTES / int(sizeof(WordA) < sizeof(WordB) ? sizeof(WordA) : sizeof(WordB));
    __shared__ int64_t of_row[WORDS / LEAST_COLUMNS];
    if (blockIdx.x < of_a.blocks)
        copy_patches(a, to_a, of_a, blockIdx.x, of_row);
    else
        copy_patches(b, to_b, of_b, blockIdx.x - unsigned(of_a.blocks), of_row);
}

}  // namespace conv2d
