// Slices of operands in shared memory, as TMA brings them, and the ring of stages that they are in.
#pragma once
#include "../../common/tma.cuh"

namespace matmul {

constexpr int SLICE = 128, BLOCK_BYTES = 64 * SLICE;  // bytes of k; bytes of 64 of SPAN in a slice

// A slice of an operand in shared memory. K_MAJOR: SPAN rows of 128 bytes along k, in one box. Else a box for every 128 bytes
// along SPAN, with a row per k. Either way 64 of SPAN are BLOCK_BYTES.
template <class T, int SPAN, bool K_MAJOR> struct OperandSlice {
    static constexpr int DEPTH = SLICE / sizeof(T), BYTES = SPAN * SLICE;
    static constexpr int STEP = K_MAJOR ? 32 : 16 * SLICE;  // bytes from a step to the next
    static_assert(K_MAJOR || sizeof(T) > 1, "bytes are read along k only");

    // To this block, or to the blocks of the cluster whose bits are set in `sharers`.
    template <bool MULTICAST>
    __device__ __forceinline__ static void copy(unsigned char* to, const CUtensorMap& map, uint64_t* barrier, int first,
                                                int k, int batch, unsigned sharers = 0) {
        const auto load = [&](unsigned char* to, int column, int row) {
            if constexpr (MULTICAST)
                tma_load_multicast(to, map, barrier, column, row, batch, sharers);
            else
                tma_load(to, map, barrier, column, row, batch);
        };
        if constexpr (K_MAJOR) {
            load(to, k, first);
        } else {
#pragma unroll
            for (int i = 0; i < SPAN / DEPTH; ++i) load(to + i * DEPTH * SLICE, first + i * DEPTH, k);
        }
    }
};

// A position in the ring of stages; the parity of a stage's barriers changes in every round.
template <int STAGES> struct Ring {
    int stage = 0;
    unsigned parity = 0;

    __device__ __forceinline__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

}  // namespace matmul
