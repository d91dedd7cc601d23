// stmatrix (common/stmatrix.cuh): the last lane to arrive collects the rows, and each lane writes the one that it points to,
// later: a read without a barrier in between finds the old bytes.
#pragma once
#include <cstring>

#include "mbarrier.h"
#include "vector_types.h"

namespace simt {

struct MatrixPairs {
    uint16_t pairs[4][2];
    uint16_t row[8];  // row lane % 8 of matrix lane / 8
};

template <bool TRANSPOSED> void collect_rows(Thread* warp, int, unsigned) {
    const auto of = [warp](int lane) -> MatrixPairs& { return *static_cast<MatrixPairs*>(warp[lane].operand); };
    for (int lane = 0; lane < warpSize; ++lane)
        for (int i = 0; i < 8; ++i) {
            const int row = TRANSPOSED ? i : lane % 8, col = TRANSPOSED ? lane % 8 : i;  // of what the lanes hold
            of(lane).row[i] = of(row * 4 + col / 2).pairs[lane / 8][col % 2];
        }
}

}  // namespace simt

// Inlined, so that a trace has the caller's line; a row is written by one 16-byte access.
template <bool TRANSPOSED = false> __forceinline__ void stmatrix(void* row, const unsigned (&from)[4]) {
    if (simt::Block::current->warp_lanes() != warpSize)
        simt::fail("stmatrix needs all 32 lanes; the block's last warp has fewer");
    if (shared_address(row) % 16 != 0) simt::fail("stmatrix: a row is not aligned to 16 bytes");
    simt::MatrixPairs mine;
    std::memcpy(mine.pairs, from, sizeof mine.pairs);
    simt::rendezvous_of_warp("stmatrix", 0xffffffff, mine, simt::collect_rows<TRANSPOSED>);
    uint4 words;
    std::memcpy(&words, mine.row, sizeof words);
    *static_cast<uint4*>(row) = words;
}
