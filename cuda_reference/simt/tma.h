// The copy engine (common/tma.cuh).
#pragma once
#include "mbarrier.h"

namespace simt {

inline void land(const TiledTensor& tensor, unsigned char* to, uint64_t* place, int column, int row, int batch) {
    const int size = int(tensor.element_bytes), width = int(tensor.box[1]) * size, height = int(tensor.box[0]);
    const int64_t first = std::max(0, -column), last = std::min<int64_t>(tensor.box[1], tensor.sizes[2] - column);
    const unsigned start = shared_address(to);
    for (int r = 0; r < height; ++r) {
        unsigned char line[128] = {};
        const bool inside = row + r >= 0 && row + r < tensor.sizes[1] && batch >= 0 && batch < tensor.sizes[0];
        if (inside && first < last) {
            const int64_t offset = batch * tensor.strides[0] + (row + r) * tensor.strides[1] + column + first;
            const char* const from = reinterpret_cast<const char*>(tensor.address) + offset * size;
            std::memcpy(line + first * size, from, (last - first) * size);
        }
        for (int byte = 0; byte < width; byte += 16)
            untraced_copy(dynamic_shared_memory + swizzled(start + r * 128 + byte), line + byte, 16);
    }
    Mbarrier barrier = read_mbarrier(place);
    barrier.bytes -= width * height;
    write_mbarrier(place, barrier);
}

}  // namespace simt

inline void tma_load(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch) {
    simt::initialized("a tensor copy's barrier", barrier);
    if (shared_address(to) % 128 != 0) simt::fail("a tensor copy to an address that is not a multiple of 128");
    // The map by value: the thread that asks may have exited when the box lands
    const auto copy = [tensor = map.tensor, to = static_cast<unsigned char*>(to), barrier, column, row, batch] {
        simt::land(tensor, to, barrier, column, row, batch);
    };
    if (simt::Block::current->flip())
        copy();
    else
        simt::Copies::mine().of_barrier[barrier].push_back(copy);
}
