// The functions of tma.h.
#include "../common/tensor_map.cuh"
//
#include "tma.h"

#include <algorithm>
#include <deque>
#include <unordered_map>
#include <vector>

#include "copies.h"
#include "mma_sync.h"  // round_to_tf32

namespace simt {

// Rounds to nearest; ties away from zero, since which way those of the hardware go is not documented.
static void line_to_tf32(unsigned char (&line)[128]) {
    unsigned words[32];
    std::memcpy(words, line, sizeof words);
    for (unsigned& word : words) word = round_to_tf32(word);
    std::memcpy(line, words, sizeof words);
}

// To the block's shared memory, given the addresses where it is in turn.
static void load_box(Block& block, const TiledTensor& tensor, unsigned char* to, uint64_t* place, int column, int row,
                     int batch) {
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
            untraced_copy(block.there(dynamic_shared_memory + swizzled(start + r * 128 + byte)), line + byte, 16);
    }
    uint64_t* const counts = reinterpret_cast<uint64_t*>(block.there(place));
    Mbarrier barrier = read_mbarrier(counts);
    barrier.bytes -= width * height;
    write_mbarrier(counts, barrier);
}

// A request for it. In each block of a cluster the box lands at a time of its own.
static void load_to(Block& block, const TiledTensor& tensor, unsigned char* to, uint64_t* place, int column, int row,
                    int batch) {
    if (block.ended()) fail("a tensor copy to a block that has ended");
    initialized("a tensor copy's barrier", reinterpret_cast<uint64_t*>(block.there(place)));
    Copies& copies = Copies::of(block);
    if (!copies.knows_barriers) fail("a tensor copy without mbarrier_init_fence() after its barrier was made");
    if (shared_address(to) % 128 != 0) fail("a tensor copy to an address that is not a multiple of 128");
    const bool from_elsewhere = &block != Block::current;
    block.landing += from_elsewhere;
    // The map by value: the requesting thread may have exited when the box lands
    const auto copy = [&block, tensor, to, place, column, row, batch, from_elsewhere] {
        load_box(block, tensor, to, place, column, row, batch);
        block.landing -= from_elsewhere;
    };
    if (Block::current->flip())
        copy();
    else
        copies.of_barrier[place].push_back(copy);
}

static void store_box(const TiledTensor& tensor, const unsigned char* from, int column, int row, int batch) {
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
    bool fenced;  // since its last commit
    std::vector<std::function<void()>> open;
    std::deque<std::vector<std::function<void()>>> groups;  // oldest first

    static Stores& mine() {
        static thread_local std::unordered_map<int, Stores> of_threads;  // those that have asked, at a fixed place
        Stores& stores = of_threads[Block::current->slot()];
        if (stores.block != Block::current->serial()) stores = {Block::current->serial(), false, {}, {}};
        return stores;
    }
};

void wait_stores(size_t pending) {
    auto& mine = Stores::mine();
    for (; mine.groups.size() > pending; mine.groups.pop_front())
        for (const auto& copy : mine.groups.front()) copy();
}

}  // namespace simt

void tma_load(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch) {
    simt::load_to(*simt::Block::current, map.tensor, static_cast<unsigned char*>(to), barrier, column, row, batch);
}

void tma_load_multicast(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch,
                               unsigned blocks) {
    auto* const place = static_cast<unsigned char*>(to);
    for (int i = 0; blocks >> i != 0; ++i)
        if (blocks >> i & 1) simt::load_to(simt::Block::current->peer(i), map.tensor, place, barrier, column, row, batch);
}

void tma_store(const CUtensorMap& map, const void* from, int column, int row, int batch) {
    if (shared_address(from) % 128 != 0) simt::fail("a tensor copy from an address that is not a multiple of 128");
    if (column * map.tensor.element_bytes % 16 != 0) simt::fail("a tensor copy to within a chunk of 16 bytes");
    auto& mine = simt::Stores::mine();
    if (!mine.fenced) simt::fail("a tensor store without tma_store_fence() since the last one: it may read old data");
    const auto copy = [tensor = map.tensor, from = static_cast<const unsigned char*>(from), column, row, batch] {
        simt::store_box(tensor, from, column, row, batch);
    };
    if (simt::Block::current->flip())
        copy();
    else
        mine.open.push_back(copy);
}

void tma_store_fence() {
    simt::Block::current->fence_proxy();
    simt::Stores::mine().fenced = true;
}

void tma_store_commit() {
    auto& mine = simt::Stores::mine();
    mine.fenced = false;
    mine.groups.push_back(std::move(mine.open));
    mine.open.clear();
}
