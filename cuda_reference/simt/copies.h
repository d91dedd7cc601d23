// What mbarrier.cpp and tma.cpp share: an mbarrier's 8 bytes, and the copies that wait for it.
#pragma once
#include <functional>
#include <map>
#include <vector>

#include "warp.h"

namespace simt {

struct Mbarrier {  // its 8 bytes
    uint16_t expected, pending;  // arrivals: of a phase, and still missing in this one
    int32_t bytes : 24;          // announced but not landed yet
    uint32_t parity : 1, mark : 7;
};
static_assert(sizeof(Mbarrier) == sizeof(uint64_t), "as large as the hardware's");
constexpr unsigned MBARRIER_MARK = 0x2A;  // fresh shared memory, all ones, is not an mbarrier

// Copied untraced: concurrent access to an mbarrier is no race.
inline Mbarrier read_mbarrier(const uint64_t* place) {
    Mbarrier barrier;
    untraced_copy(&barrier, place, sizeof barrier);
    return barrier;
}
inline void write_mbarrier(uint64_t* place, Mbarrier barrier) {
    if (barrier.pending == 0 && barrier.bytes == 0) {
        barrier.parity ^= 1;
        barrier.pending = barrier.expected;
    }
    untraced_copy(place, &barrier, sizeof barrier);
}

inline Mbarrier initialized(const char* name, const uint64_t* place) {
    const Mbarrier barrier = read_mbarrier(place);
    if (barrier.mark != MBARRIER_MARK) fail(std::string(name) + " on memory that is not an mbarrier");
    return barrier;
}

// Pending copies to a block that runs on this OS thread, by their barrier.
struct Copies {
    uint64_t block;
    std::map<const uint64_t*, std::vector<std::function<void()>>> of_barrier;
    bool knows_barriers;  // mbarrier_init_fence() has made the initialized ones known to the copy engine

    static Copies& mine() { return of(*Block::current); }
    static Copies& of(const Block& block) {
        static thread_local Copies of_blocks[MOST_BLOCKS] = {};
        Copies& copies = of_blocks[block.cluster_rank()];
        if (copies.block != block.serial()) copies = {block.serial(), {}, false};
        return copies;
    }
};

}  // namespace simt
