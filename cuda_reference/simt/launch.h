// A launch: the blocks of the grid, spread over OS threads. SIMT_THREADS sets how many (default: as many as the machine
// has cores); SIMT_ORDER=<seed> runs blocks, and in every round the threads of a block, in a random order, so that a
// missing barrier shows.
#pragma once
#include "block.h"

// The dynamic shared memory of the block that runs on this OS thread.
constexpr size_t SIMT_SHARED_LIMIT = 227 * 1024;  // what a block can have on sm_90 and sm_100
#ifdef __SANITIZE_ADDRESS__
alignas(1024) inline unsigned char dynamic_shared_memory[SIMT_SHARED_LIMIT];  // __shared__ would be one a translation unit
#else
alignas(1024) inline __shared__ unsigned char dynamic_shared_memory[SIMT_SHARED_LIMIT];
#endif

namespace simt {

// The __launch_bounds__ and __cluster_dims__ of each kernel, set by the module's source (launch_bounds.py).
void at_most(const void* kernel, unsigned threads);
void in_clusters(const void* kernel, unsigned blocks);

template <class... P> void at_most(void (*kernel)(P...), unsigned threads) {
    at_most(reinterpret_cast<const void*>(kernel), threads);
}
template <class... P> void in_clusters(void (*kernel)(P...), unsigned blocks) {
    in_clusters(reinterpret_cast<const void*>(kernel), blocks);
}

template <class... T> constexpr unsigned first_of(unsigned threads, T...) { return threads; }

// Its `address` is the kernel's name for at_most.
void run_grid(const void* address, const Body& kernel, dim3 grid, dim3 block, size_t shared_bytes);

}  // namespace simt
