// The functions of mbarrier.h.
#include "mbarrier.h"

#include "copies.h"

namespace simt {

struct MbarrierWait {
    uint64_t* barrier;
    unsigned parity;

    bool over() const { return read_mbarrier(barrier).parity != parity; }
};

static bool mbarrier_lets_pass(void* operand) {
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

void wait_mbarrier(uint64_t* place, unsigned parity) {
    initialized("mbarrier.try_wait", place);
    MbarrierWait wait{place, parity};
    Block::current->wait_until("mbarrier.try_wait", mbarrier_lets_pass, &wait);
}

const void* in_block(const void* here, int block) {
    Block& there = Block::current->peer(block);
    if (there.ended()) fail("shared memory of a block that has ended");
    return there.there(here);
}

}  // namespace simt

void mbarrier_init(uint64_t* place, int arrivals) {
    if (reinterpret_cast<uintptr_t>(place) % 8 != 0) simt::fail("mbarrier.init of a misaligned address");
    if (arrivals < 1 || arrivals > 0xFFFF) simt::fail("mbarrier.init with " + std::to_string(arrivals) + " arrivals");
    if (simt::read_mbarrier(place).mark == simt::MBARRIER_MARK) simt::fail("mbarrier.init on an mbarrier");
    simt::write_mbarrier(place, {uint16_t(arrivals), uint16_t(arrivals), 0, 0, simt::MBARRIER_MARK});
    simt::Copies::mine().knows_barriers = false;
}

void mbarrier_init_fence() { simt::Copies::mine().knows_barriers = true; }

void mbarrier_arrive_expect(uint64_t* place, int bytes) {
    simt::Mbarrier barrier = simt::initialized("mbarrier.arrive", place);
    if (barrier.pending == 0) simt::fail("mbarrier.arrive: more arrivals than its phase expects");
    --barrier.pending;
    barrier.bytes += bytes;
    simt::write_mbarrier(place, barrier);
}

void mbarrier_arrive_at(uint64_t* place, int block) {
    simt::Block& there = simt::Block::current->peer(block);
    if (there.ended()) simt::fail("mbarrier.arrive at a block that has ended");
    mbarrier_arrive(reinterpret_cast<uint64_t*>(there.there(place)));
}
