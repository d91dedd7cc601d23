// mbarriers (common/mbarrier.cuh). Copies land as late as allowed, when a thread waits for their barrier, so that a missing
// wait shows. In a random order of threads (SIMT_ORDER) about half land at once, so that overwriting data that is still read
// shows.
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

    static Copies& mine() {
        return of(*Block::current);
    }
    static Copies& of(const Block& block) {
        static thread_local Copies of_blocks[MOST_BLOCKS] = {};
        Copies& copies = of_blocks[block.cluster_rank()];
        if (copies.block != block.serial()) copies = {block.serial(), {}, false};
        return copies;
    }
};

struct MbarrierWait {
    uint64_t* barrier;
    unsigned parity;

    bool over() const { return read_mbarrier(barrier).parity != parity; }
};

inline bool mbarrier_lets_pass(void* operand) {
    const auto& wait = *static_cast<const MbarrierWait*>(operand);
    if (wait.over()) return true;
    auto& waiting = Copies::mine().of_barrier;
    const auto found = waiting.find(wait.barrier);
    if (found == waiting.end()) return false;
    const auto copies = std::move(found->second);
    waiting.erase(found);
    for (const auto& copy : copies) copy();
    return wait.over();
}

}  // namespace simt

namespace simt {

// The swizzled address of a chunk of 16 bytes in shared memory.
inline unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7) << 4; }

}  // namespace simt

inline unsigned shared_address(const void* pointer) {
    const ptrdiff_t offset = static_cast<const unsigned char*>(pointer) - dynamic_shared_memory;
    if (offset < 0 || size_t(offset) >= SIMT_SHARED_LIMIT) simt::fail("not an address of dynamic shared memory");
    return unsigned(offset);
}

inline void mbarrier_init(uint64_t* place, int arrivals) {
    if (reinterpret_cast<uintptr_t>(place) % 8 != 0) simt::fail("mbarrier.init of a misaligned address");
    if (arrivals < 1 || arrivals > 0xFFFF) simt::fail("mbarrier.init with " + std::to_string(arrivals) + " arrivals");
    if (simt::read_mbarrier(place).mark == simt::MBARRIER_MARK) simt::fail("mbarrier.init on an mbarrier");
    simt::write_mbarrier(place, {uint16_t(arrivals), uint16_t(arrivals), 0, 0, simt::MBARRIER_MARK});
    simt::Copies::mine().knows_barriers = false;
}

inline void mbarrier_init_fence() { simt::Copies::mine().knows_barriers = true; }

inline void mbarrier_arrive_expect(uint64_t* place, int bytes) {
    simt::Mbarrier barrier = simt::initialized("mbarrier.arrive", place);
    if (barrier.pending == 0) simt::fail("mbarrier.arrive: more arrivals than its phase expects");
    --barrier.pending;
    barrier.bytes += bytes;
    simt::write_mbarrier(place, barrier);
}

inline void mbarrier_arrive(uint64_t* place) { mbarrier_arrive_expect(place, 0); }

inline void mbarrier_arrive_at(uint64_t* place, int block) {
    simt::Block& there = simt::Block::current->peer(block);
    if (there.ended()) simt::fail("mbarrier.arrive at a block that has ended");
    mbarrier_arrive(reinterpret_cast<uint64_t*>(there.there(place)));
}

inline void cluster_barrier() {
    simt::fence();
    simt::Block::current->wait_cluster("barrier.cluster.wait");
    simt::fence();
}

inline void cluster_exchange() { cluster_barrier(); }

template <class T> const T* in_block(const T* here, int block) {
    simt::Block& there = simt::Block::current->peer(block);
    if (there.ended()) simt::fail("shared memory of a block that has ended");
    return reinterpret_cast<const T*>(there.there(here));
}

inline void mbarrier_wait(uint64_t* place, unsigned parity) {
    simt::initialized("mbarrier.try_wait", place);
    simt::MbarrierWait wait{place, parity};
    simt::fence();
    simt::Block::current->wait_until("mbarrier.try_wait", simt::mbarrier_lets_pass, &wait);
    simt::fence();
}
