// ldmatrix (common/ldmatrix.cuh): each lane reads the row that it points to, and the last to arrive distributes the elements.
#pragma once
#include <cstring>

#include "vector_types.h"
#include "warp.h"

namespace simt {

template <int COUNT> struct MatrixRows {
    uint16_t row[8];  // of matrix lane / 8, where there is one
    unsigned result[COUNT];
};

template <int COUNT, bool TRANSPOSED> void deal_matrices(Thread* warp, int, unsigned) {
    const auto of = [warp](int lane) -> MatrixRows<COUNT>& { return *static_cast<MatrixRows<COUNT>*>(warp[lane].operand); };
    for (int matrix = 0; matrix < COUNT; ++matrix)
        for (int lane = 0; lane < warpSize; ++lane) {
            const int i = lane / 4, j = lane % 4 * 2;
            const auto element = [&](int row, int col) -> unsigned { return of(8 * matrix + row).row[col]; };
            of(lane).result[matrix] =
                TRANSPOSED ? element(j, i) | element(j + 1, i) << 16 : element(i, j) | element(i, j + 1) << 16;
        }
}

}  // namespace simt

// Inlined, so that a trace has the caller's line; a row is read by one 16-byte access.
template <bool TRANSPOSED, int COUNT> __forceinline__ void ldmatrix(unsigned (&to)[COUNT], const void* row) {
    static_assert(COUNT == 1 || COUNT == 2 || COUNT == 4, "one, two or four matrices");
    if (simt::Block::current->warp_lanes() != warpSize)
        simt::fail("ldmatrix needs all 32 lanes; the block's last warp has fewer");
    simt::MatrixRows<COUNT> rows;
    if (simt::lane() < 8 * COUNT) {
        if (reinterpret_cast<uintptr_t>(row) % 16 != 0) simt::fail("ldmatrix: a row is not aligned to 16 bytes");
        const uint4 words = *static_cast<const uint4*>(row);
        std::memcpy(rows.row, &words, sizeof words);
    }
    simt::rendezvous_of_warp("ldmatrix", 0xffffffff, rows, simt::deal_matrices<COUNT, TRANSPOSED>);
    std::memcpy(to, rows.result, sizeof to);
}
