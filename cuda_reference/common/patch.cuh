// A patch of 64 x 64 of an operand of any strides, in shared memory: a block of PATCH_THREADS reads it with neighbouring
// lanes along the smaller stride. Its rows are an odd number of words (or of 64 bits) apart, so that neither has bank conflicts.
#pragma once
#include "index.cuh"

constexpr int PATCH = 64, PATCH_THREADS = 256, LINES = PATCH_THREADS / PATCH;  // LINES at a time
template <class Bits> using PatchTile = Bits[PATCH][PATCH + (sizeof(Bits) < 4 ? 4 / sizeof(Bits) : 1)];

struct OperandStrides {
    int64_t batch, span, k;  // span: along M of A, along N of B
};

// Which patch a block takes, of those that cover a batch of span x K.
struct Patch {
    int batch, first, first_k;

    __device__ __forceinline__ Patch(int span, int K) {
        const int patches_k = ceil_div(K, PATCH), patches = ceil_div(span, PATCH) * patches_k, here = blockIdx.x % patches;
        batch = blockIdx.x / patches;
        first = here / patches_k * PATCH;
        first_k = here % patches_k * PATCH;
    }

    // With zeros outside span x K. All loads of a thread are under way at once: a patch waits for memory once.
    template <class Bits>
    __device__ __forceinline__ void load(PatchTile<Bits>& tile, const Bits* matrices, int span, int K,
                                         OperandStrides stride) const {
        const bool along_k = stride.k <= stride.span;
        const int line = threadIdx.x / PATCH, place = threadIdx.x % PATCH;  // in a line, which lies along the smaller stride
        const int s = along_k ? line : place, k = along_k ? place : line;
        const int lines = along_k ? span - first : K - first_k, places = along_k ? K - first_k : span - first;
        const Bits* const from = matrices + batch * stride.batch + (first + s) * stride.span + (first_k + k) * stride.k;
        const int64_t apart = LINES * (along_k ? stride.span : stride.k);
        Bits loaded[PATCH / LINES];
#pragma unroll
        for (int i = 0; i < PATCH / LINES; ++i) loaded[i] = place < places && line + i * LINES < lines ? from[i * apart] : Bits(0);
#pragma unroll
        for (int i = 0; i < PATCH / LINES; ++i) tile[along_k ? line + i * LINES : place][along_k ? place : line + i * LINES] = loaded[i];
        __syncthreads();
    }
};
