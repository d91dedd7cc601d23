// A patch of 64 x 64 of an operand of any strides, in shared memory: a block of 256 threads reads it with neighbouring lanes
// along the smaller stride. Its rows are an odd number of words (or of 64 bits) apart, so that neither has bank conflicts.
#pragma once
#include "index.cuh"

constexpr int PATCH = 64;
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

    // With zeros outside span x K.
    template <class Bits>
    __device__ __forceinline__ void load(PatchTile<Bits>& tile, const Bits* matrices, int span, int K,
                                         OperandStrides stride) const {
        const Bits* const from = matrices + batch * stride.batch;
        const bool along_k = stride.k <= stride.span;
#pragma unroll
        for (int i = threadIdx.x; i < PATCH * PATCH; i += 256) {
            const int s = along_k ? i / PATCH : i % PATCH, k = along_k ? i % PATCH : i / PATCH;
            const bool inside = first + s < span && first_k + k < K;
            tile[s][k] = inside ? from[(first + s) * stride.span + (first_k + k) * stride.k] : Bits(0);
        }
        __syncthreads();
    }
};
