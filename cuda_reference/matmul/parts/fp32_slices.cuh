// Products of fp32 on CUDA cores, from slices that lie in shared memory as in global memory: of BK of K by SPAN places, rows of A or
// columns of B.
//
// They come by cp.async, without registers, and several are under way. With VECTOR 16 bytes at a time, 4 neighbours along a line
// of the matrix; else float by float, of any strides, the lanes of a warp side by side. A thread takes them out in blocks of 4 of K
// by 4 places, in four words of 16 bytes, whichever way they lie: a word is a k of 4 places, or 4 k of a place. So an operand along
// K, as the weight of a linear layer is, need not be transposed on its way, float by float.
//
// Along K the words of a place are 128 bytes, all banks, and lanes read the same k of places 4 apart: word w of place p lies at
// w ^ (p / 4 % 8), so that 8 of them meet different banks. A warp copies whole places, and no two words of one meet.
//
// What it costs: the four floats of a word are in neighbouring registers, so of an operand along K those of one k lie 4 apart, all
// in one of the two banks of the register file. Half of the FFMA then wait a clock for a sum that is in the same bank: tiles of 128
// x 128 reach 43 TFLOP/s on an H100, where gemm's loop, which transposes, reaches 48. So it is for tiles that wait for memory.
#pragma once
#include "../../common/cp_async.cuh"
#include "../../common/structs.cuh"
#include "../../gemm/parts/z_order.cuh"

namespace matmul {

template <bool ALONG_K, int SPAN, int BK, int THREADS, bool VECTOR> struct Fp32Slices {
    static constexpr int CHUNK = VECTOR ? 4 : 1;
    static constexpr int LINE = ALONG_K ? BK : SPAN, LINES = ALONG_K ? SPAN : BK;  // a line: neighbours in memory
    static constexpr int PARTS = LINE / CHUNK > THREADS ? LINE / CHUNK / THREADS : 1;  // of a line, which all threads copy in turn
    static constexpr int LANES = LINE / CHUNK / PARTS, STEP = THREADS / LANES, COPIES = LINES / STEP;
    static constexpr int SIZE = SPAN * BK;
    static_assert(BK == 32, "a place's K is all banks");
    static_assert(THREADS % LANES == 0 && LINES % STEP == 0, "every thread copies the same parts of every STEP-th line");
    static_assert(PARTS == 1 || !ALONG_K, "of places, whose number is checked");

    const float* from;      // what this thread copies first of the next slice
    int64_t along, across;  // to the next element of a line, to the next line
    int lines, elements;    // up to the last place of the matrix, from this thread's first on, where lines are places or hold them

    // `matrix` begins at the first k; `first` of its `span` places begin the tile.
    __device__ __forceinline__ Fp32Slices(const float* matrix, int first, int span, int64_t of_place, int64_t of_k)
        : along(VECTOR ? 1 : ALONG_K ? of_k : of_place), across(ALONG_K ? of_place : of_k) {
        from = matrix + first * of_place + at_in_line() * along + line(0) * across;
        lines = span - first - line(0), elements = span - first - at_in_line();
    }

    __device__ __forceinline__ static int at_in_line(int part = 0) { return (threadIdx.x % LANES + part * LANES) * CHUNK; }
    __device__ __forceinline__ static int line(int i) { return threadIdx.x / LANES + i * STEP; }

    // Where an element lies in the tile.
    __device__ __forceinline__ static int at(int k, int place) {
        return ALONG_K ? place * BK + (k ^ place & 28) : k * SPAN + place;  // 28: words of 4, of which 8 are 128 bytes
    }
    __device__ __forceinline__ static int copied_to(int i, int part) {
        return ALONG_K ? at(at_in_line(), line(i)) : at(line(i), at_in_line(part));
    }

    // Places outside the matrix are not copied: sums of whatever is there are not stored.
    __device__ __forceinline__ bool is_inside(int i, int part) const {
        return ALONG_K ? i * STEP < lines : part * LANES * CHUNK < elements;
    }

    // The next slice, all of it inside K, and not at its end: 16 bytes may hold what stands between a line of places and the next,
    // but behind the last there may be nothing.
    __device__ __forceinline__ void copy(float* tile) {
        const float* next = from;
#pragma unroll
        for (int i = 0; i < COPIES; ++i, next += STEP * across) {
#ifdef __CUDACC__
            asm volatile("" : "+l"(next), "+r"(lines));  // or registers hold the address of each copy, and ptxas spills
#endif
#pragma unroll
            for (int part = 0; part < PARTS; ++part)
                if (is_inside(i, part)) cp_async<4 * CHUNK>(tile + copied_to(i, part), next + part * LANES * CHUNK * along);
        }
        from += BK * (ALONG_K ? along : across);
    }

    // The slice that begins at first_k, zeros from K on: they add nothing to a sum. A word that is not whole comes float by float,
    // since a copy of 16 bytes may read all of them, whatever it is told.
    __device__ __forceinline__ void copy_tail(float* tile, int first_k, int K) const {
        const float* const tail = from + first_k * (ALONG_K ? along : across);
#pragma unroll
        for (int copy = 0; copy < COPIES * PARTS; ++copy) {
            const int i = copy / PARTS, part = copy % PARTS;
            if (!is_inside(i, part)) continue;
            const int places = elements - part * LANES * CHUNK;
            const int left = ALONG_K ? K - first_k - at_in_line() : first_k + line(i) < K ? places : 0;
            float* const to = tile + copied_to(i, part);
            const float* const from_here = tail + i * STEP * across + part * LANES * CHUNK * along;
            if (left >= CHUNK) {
                cp_async<4 * CHUNK>(to, from_here);
            } else {
#pragma unroll
                for (int j = 0; j < CHUNK; ++j)
                    cp_async<4>(to + j, from_here + j, j < left ? 4 : 0);
            }
        }
    }

    // block[i][j] = what is at k + i and place + j, both multiples of 4.
    __device__ __forceinline__ static void load(float (&block)[4][4], const float* tile, int k, int place) {
        const float* const first = tile + at(k, place);
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float4 word = *reinterpret_cast<const float4*>(first + i * (ALONG_K ? BK : SPAN));
            const float of[] = {word.x, word.y, word.z, word.w};
#pragma unroll
            for (int j = 0; j < 4; ++j) (ALONG_K ? block[j][i] : block[i][j]) = of[j];
        }
    }
};

// The sums of a block tile, from STAGES slices: one that is multiplied, the others under way.
template <int BM, int BN, int BK, int TM, int TN, int STAGES, bool A_ALONG_K, bool B_ALONG_K, bool VECTOR_A, bool VECTOR_B>
struct AsTheyLie {
    using Place = gemm::ZOrder<BM, BN, TM, TN>;
    static constexpr int THREADS = gemm::Shape<BM, BN, TM, TN>::THREADS;
    using A = Fp32Slices<A_ALONG_K, BM, BK, THREADS, VECTOR_A>;
    using B = Fp32Slices<B_ALONG_K, BN, BK, THREADS, VECTOR_B>;
    struct Slice {
        alignas(16) float a[A::SIZE];
        alignas(16) float b[B::SIZE];
    };

    // Column by column, to and fro along the rows: every FFMA shares a factor with the one before (gemm/parts/tile_io.cuh). Of B
    // a thread holds a block, not a fragment of TN columns: 16 registers.
    __device__ __forceinline__ static void multiply_add(float (&sum)[TM][TN], const Slice& slice) {
#pragma unroll 2
        for (int k = 0; k < BK; k += 4) {
            float a[TM / 4][4][4];
#pragma unroll
            for (int m = 0; m < TM / 4; ++m) A::load(a[m], slice.a, k, Place::row() + m * Place::GAP_M);
#pragma unroll
            for (int n = 0; n < TN; n += 4) {
                float b[4][4];
                B::load(b, slice.b, k, Place::col() + n / 4 * Place::GAP_N);
#pragma unroll
                for (int i = 0; i < 16; ++i)
#pragma unroll
                    for (int j = 0; j < TM; ++j) {
                        const int m = i % 2 ? TM - 1 - j : j;
                        sum[m][n + i % 4] += a[m / 4][i / 4][m % 4] * b[i / 4][i % 4];
                    }
            }
        }
    }

    // sum += A B, where A has K columns and B K rows. The last slice, which may exceed K, is done first: the loop has no guards.
    __device__ __forceinline__ static void accumulate(float (&sum)[TM][TN], Slice* slices, const float* a_matrix,
                                                      const float* b_matrix, int first_row, int first_col, int M, int N, int K,
                                                      const gemm::Strides& stride) {
        A a(a_matrix, first_row, M, stride.a.row, stride.a.col);
        B b(b_matrix, first_col, N, stride.b.col, stride.b.row);
        const int last = max(K - 1, 0) / BK;
        a.copy_tail(slices[0].a, last * BK, K);
        b.copy_tail(slices[0].b, last * BK, K);
        cp_async_commit();
        const auto copy = [&](Slice& to, bool is_left) {
            if (is_left) a.copy(to.a), b.copy(to.b);
            cp_async_commit();  // of nothing where there is no slice, so that waits can count groups
        };
#pragma unroll
        for (int i = 1; i < STAGES - 1; ++i) copy(slices[i], i <= last);
        int now = 0;
        for (int left = last; left >= 0; --left) {
            cp_async_wait<STAGES - 2>();
            __syncthreads();  // all have this slice, and have read the one before
            copy(slices[now == 0 ? STAGES - 1 : now - 1], left >= STAGES - 1);
            multiply_add(sum, slices[now]);
            now = now + 1 == STAGES ? 0 : now + 1;
        }
    }
};

}  // namespace matmul
