// The functions of tma.h.
#include "../common/tma.cuh"

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

// A row of a box to the block's shared memory, given the box's address where it is in turn.
static void store_line(Block& block, unsigned char* box, int row, const unsigned char (&line)[128], int width) {
    const unsigned start = shared_address(box) + row * 128;
    for (int byte = 0; byte < width; byte += 16)
        untraced_copy(block.there(dynamic_shared_memory + swizzled(start + byte)), line + byte, 16);
}

// The same for an mbarrier: so many bytes have landed.
static void count_down(Block& block, uint64_t* place, int bytes) {
    uint64_t* const counts = reinterpret_cast<uint64_t*>(block.there(place));
    Mbarrier barrier = read_mbarrier(counts);
    barrier.bytes -= bytes;
    write_mbarrier(counts, barrier);
}

// Columns of a row in memory, zeros where there are none.
template <class Tensor>
static void read_line(const Tensor& tensor, unsigned char (&line)[128], bool inside, int64_t row_offset, int column,
                      int64_t columns) {
    const int size = int(tensor.element_bytes);
    const int64_t first = std::max(0, -column), last = std::min<int64_t>(tensor.box[1], columns - column);
    std::memset(line, 0, sizeof line);
    if (!inside || first >= last) return;
    const char* const from = reinterpret_cast<const char*>(tensor.address) + (row_offset + column + first) * size;
    std::memcpy(line + first * size, from, (last - first) * size);
}

static void load_box(Block& block, const TiledTensor& tensor, unsigned char* to, uint64_t* place, int column, int row,
                     int batch) {
    const int width = int(tensor.box[1] * tensor.element_bytes), height = int(tensor.box[0]);
    unsigned char line[128];
    for (int r = 0; r < height; ++r) {
        const bool inside = row + r >= 0 && row + r < tensor.sizes[1] && batch >= 0 && batch < tensor.sizes[0];
        read_line(tensor, line, inside, batch * tensor.strides[0] + (row + r) * tensor.strides[1], column, tensor.sizes[2]);
        if (tensor.to_tf32) line_to_tf32(line);
        store_line(block, to, r, line, width);
    }
    count_down(block, place, width * height);
}

// From `pixel` on, along W, H and N within the corners.
static void load_pixels(Block& block, const PixelTensor& t, unsigned char* to, uint64_t* place, int channel, Pixel pixel,
                        const Tap& tap) {
    const int width = int(t.box[1] * t.element_bytes), count = int(t.box[0]);
    unsigned char line[128];
    for (int i = 0; i < count; ++i) {
        const int64_t at[3] = {pixel.image, pixel.row + tap.down, pixel.column + tap.right};
        bool inside = true;
        int64_t offset = 0;
        for (int axis = 0; axis < 3; ++axis) {
            inside = inside && at[axis] >= 0 && at[axis] < t.sizes[axis];
            offset += at[axis] * t.strides[axis];
        }
        read_line(t, line, inside, offset, channel, t.sizes[3]);
        if (t.to_tf32) line_to_tf32(line);
        store_line(block, to, i, line, width);
        pixel.column += int(t.steps[1]);
        if (pixel.column < t.sizes[2] + t.last[1]) continue;
        pixel.column = int(t.first[1]);
        pixel.row += int(t.steps[0]);
        if (pixel.row < t.sizes[1] + t.last[0]) continue;
        pixel.row = int(t.first[0]);
        ++pixel.image;
    }
    count_down(block, place, width * count);
}

// A request for a box, which `load` brings. In each block of a cluster it lands at a time of its own.
static void request(Block& block, const unsigned char* to, uint64_t* place, const std::function<void()>& load) {
    if (block.ended()) fail("a tensor copy to a block that has ended");
    initialized("a tensor copy's barrier", reinterpret_cast<uint64_t*>(block.there(place)));
    Copies& copies = Copies::of(block);
    if (!copies.knows_barriers) fail("a tensor copy without mbarrier_init_fence() after its barrier was made");
    if (shared_address(to) % 128 != 0) fail("a tensor copy to an address that is not a multiple of 128");
    const bool from_elsewhere = &block != Block::current;
    block.landing += from_elsewhere;
    const auto copy = [&block, load, from_elsewhere] {
        load();
        block.landing -= from_elsewhere;
    };
    if (Block::current->flip())
        copy();
    else
        copies.of_barrier[place].push_back(copy);
}

// The map by value: the requesting thread may have exited when the box lands.
static void load_to(Block& block, const CUtensorMap& map, void* to, uint64_t* place, int column, int row, int batch) {
    if (map.pixels.box[0] != 0) fail("a tensor copy of a matrix by a map of pixels");
    auto* const box = static_cast<unsigned char*>(to);
    request(block, box, place, [&block, tensor = map.tensor, box, place, column, row, batch] {
        load_box(block, tensor, box, place, column, row, batch);
    });
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
    simt::load_to(*simt::Block::current, map, to, barrier, column, row, batch);
}

void tma_load_multicast(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch,
                               unsigned blocks) {
    for (int i = 0; blocks >> i != 0; ++i)
        if (blocks >> i & 1) simt::load_to(simt::Block::current->peer(i), map, to, barrier, column, row, batch);
}

void tma_load_pixels(void* to, const CUtensorMap& map, uint64_t* barrier, int channel, const Pixel& pixel, const Tap& tap) {
    const PixelTensor& t = map.pixels;
    if (t.box[0] == 0) simt::fail("a tensor copy of pixels by a map of matrices");
    if (tap.down > 255 || tap.right > 255) simt::fail("a tap further than 255 from its pixel");
    const int place[2] = {pixel.row, pixel.column};
    for (int axis = 0; axis < 2; ++axis) {
        const int64_t from_first = place[axis] - t.first[axis];
        if (from_first < 0 || place[axis] >= t.sizes[1 + axis] + t.last[axis] || from_first % t.steps[axis] != 0)
            simt::fail("a tensor copy from a pixel that is none of those between the corners");
    }
    simt::Block& block = *simt::Block::current;
    auto* const box = static_cast<unsigned char*>(to);
    simt::request(block, box, barrier, [&block, t, box, barrier, channel, pixel, tap] {
        simt::load_pixels(block, t, box, barrier, channel, pixel, tap);
    });
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
