// mbarriers (common/mbarrier.cuh). Copies land as late as allowed, when a thread waits for their barrier, so that a missing
// wait shows. In a random order of threads (SIMT_ORDER) about half land at once, so that overwriting data that is still read
// shows.
//
// What is no template is compiled once, in mbarrier.cpp, and not in each of the modules of kernels; so are tma.h and wgmma.h.
#pragma once
#include "warp.h"

namespace simt {

// The swizzled address of a chunk of 16 bytes in shared memory.
inline unsigned swizzled(unsigned address) { return address ^ (address >> 7 & 7) << 4; }

void wait_mbarrier(uint64_t* place, unsigned parity);
const void* in_block(const void* here, int block);

}  // namespace simt

inline unsigned shared_address(const void* pointer) {
    const ptrdiff_t offset = static_cast<const unsigned char*>(pointer) - dynamic_shared_memory;
    if (offset < 0 || size_t(offset) >= SIMT_SHARED_LIMIT) simt::fail("not an address of dynamic shared memory");
    return unsigned(offset);
}

void mbarrier_init(uint64_t* place, int arrivals);
void mbarrier_init_fence();
void mbarrier_arrive_expect(uint64_t* place, int bytes);
inline void mbarrier_arrive(uint64_t* place) { mbarrier_arrive_expect(place, 0); }
void mbarrier_arrive_at(uint64_t* place, int block);

inline void cluster_barrier() {
    simt::fence();
    simt::Block::current->wait_cluster("barrier.cluster.wait");
    simt::fence();
}

inline void cluster_exchange() { cluster_barrier(); }

template <class T> const T* in_block(const T* here, int block) {
    return static_cast<const T*>(simt::in_block(static_cast<const void*>(here), block));
}

inline void mbarrier_wait(uint64_t* place, unsigned parity) {
    simt::fence();
    simt::wait_mbarrier(place, parity);
    simt::fence();
}
