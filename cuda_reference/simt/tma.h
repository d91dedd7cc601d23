// The copy engine (common/tma.cuh). Boxes are stored as late as allowed, when the requesting thread waits for them, so that a
// missing wait shows. In a random order of threads (SIMT_ORDER) about half are stored at once, so that a request made too early
// shows.
//
// Stores write whole chunks of 16 bytes, as in hardware: if a row of the tensor ends within a chunk, the bytes after it are
// overwritten.
#pragma once
#include <deque>
#include <vector>

#include "mbarrier.h"
#include "mma_sync.h"  // round_to_tf32

namespace simt {

// Rounds to nearest; ties away from zero, since which way those of the hardware go is not documented.
inline void line_to_tf32(unsigned char (&line)[128]) {
    unsigned words[32];
    std::memcpy(words, line, sizeof words);
    for (unsigned& word : words) word = round_to_tf32(word);
    std::memcpy(line, words, sizeof words);
}

inline void load_box(const TiledTensor& tensor, unsigned char* to, uint64_t* place, int column, int row, int batch) {
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
            if (tensor.to_tf32) line_to_tf32(line);
        }
        for (int byte = 0; byte < width; byte += 16)
            untraced_copy(dynamic_shared_memory + swizzled(start + r * 128 + byte), line + byte, 16);
    }
    Mbarrier barrier = read_mbarrier(place);
    barrier.bytes -= width * height;
    write_mbarrier(place, barrier);
}

inline void store_box(const TiledTensor& tensor, const unsigned char* from, int column, int row, int batch) {
    constexpr int CHUNK = 16;
    const int64_t size = tensor.element_bytes, first = column * size, width = tensor.box[1] * size;
    const unsigned start = shared_address(from);
    for (int r = 0; r < int(tensor.box[0]); ++r) {
        if (batch < 0 || batch >= tensor.sizes[0] || row + r < 0 || row + r >= tensor.sizes[1]) continue;
        const int64_t line = (batch * tensor.strides[0] + (row + r) * tensor.strides[1]) * size;
        for (int byte = 0; byte < width; byte += CHUNK) {
            if (first + byte < 0 || first + byte >= tensor.sizes[2] * size) continue;
            char* const to = reinterpret_cast<char*>(tensor.address) + line + first + byte;
            check_inside("a tensor copy's chunk of 16 bytes", to, CHUNK);
            untraced_copy(to, dynamic_shared_memory + swizzled(start + r * 128 + unsigned(byte)), CHUNK);
        }
    }
}

// The stores that one thread has requested.
struct Stores {
    uint64_t block;
    bool fenced;  // since its last request
    std::vector<std::function<void()>> open;
    std::deque<std::vector<std::function<void()>>> groups;  // oldest first

    static Stores& mine() {
        static thread_local std::vector<Stores> of_threads(1024);
        Stores& stores = of_threads[Block::current->rank()];
        if (stores.block != Block::count) stores = {Block::count, false, {}, {}};
        return stores;
    }
};

}  // namespace simt

inline void tma_load(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch) {
    simt::initialized("a tensor copy's barrier", barrier);
    if (!simt::Copies::mine().knows_barriers) simt::fail("a tensor copy without mbarrier_init_fence() after its barrier was made");
    if (shared_address(to) % 128 != 0) simt::fail("a tensor copy to an address that is not a multiple of 128");
    // The map by value: the requesting thread may have exited when the box lands
    const auto copy = [tensor = map.tensor, to = static_cast<unsigned char*>(to), barrier, column, row, batch] {
        simt::load_box(tensor, to, barrier, column, row, batch);
    };
    if (simt::Block::current->flip())
        copy();
    else
        simt::Copies::mine().of_barrier[barrier].push_back(copy);
}

inline void tma_store(const CUtensorMap& map, const void* from, int column, int row, int batch) {
    if (shared_address(from) % 128 != 0) simt::fail("a tensor copy from an address that is not a multiple of 128");
    if (column * map.tensor.element_bytes % 16 != 0) simt::fail("a tensor copy to within a chunk of 16 bytes");
    auto& mine = simt::Stores::mine();
    if (!mine.fenced) simt::fail("a tensor store without tma_store_fence() since the last one: it may read old data");
    mine.fenced = false;
    const auto copy = [tensor = map.tensor, from = static_cast<const unsigned char*>(from), column, row, batch] {
        simt::store_box(tensor, from, column, row, batch);
    };
    if (simt::Block::current->flip())
        copy();
    else
        mine.open.push_back(copy);
}

inline void tma_store_fence() {
    simt::Block::current->fence_proxy();
    simt::Stores::mine().fenced = true;
}

inline void tma_store_commit() {
    auto& mine = simt::Stores::mine();
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
}

template <int PENDING> void tma_store_wait() {
    auto& mine = simt::Stores::mine();
    for (; mine.groups.size() > PENDING; mine.groups.pop_front())
        for (const auto& copy : mine.groups.front()) copy();
}
