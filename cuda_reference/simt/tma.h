// The copy engine (common/tma.cuh). Boxes are stored as late as allowed, when the requesting thread waits for them, so that a
// missing wait shows. In a random order of threads (SIMT_ORDER) about half are stored at once, so that a request made too early
// shows.
//
// Stores write whole chunks of 16 bytes, as in hardware: if a row of the tensor ends within a chunk, the bytes after it are
// overwritten.
#pragma once
#include "mbarrier.h"

namespace simt {

void wait_stores(size_t pending);

}  // namespace simt

void tma_load(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch);
void tma_load_multicast(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch, unsigned blocks);
void tma_load_pixels(void* to, const CUtensorMap& map, uint64_t* barrier, int channel, const Pixel& pixel, const Tap& tap);
inline bool elect_lane() { return threadIdx.x % 32 == 0; }
inline void prefetch_tensor_map(const CUtensorMap&) {}
void tma_store(const CUtensorMap& map, const void* from, int column, int row, int batch);
void tma_store_fence();
void tma_store_commit();
template <int PENDING> void tma_store_wait() { simt::wait_stores(PENDING); }
