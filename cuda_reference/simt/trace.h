// Calls from the emulation to the recorder of accesses (trace_recorder.cpp) in a traced build; empty in others.
#pragma once
#include <cstddef>
#include <cstring>

namespace simt {

#ifdef SIMT_TRACE
void trace_block();         // a new block begins
void trace_barrier();       // the running thread has passed a barrier of its block,
void trace_warp_barrier();  // and one of its warp that orders memory: a shuffle or a vote does not
// A copy without registers, of `to_bytes` of which it reads `from_bytes`, as one instruction on the calling line.
void trace_copy(const void* to, size_t to_bytes, const void* from, size_t from_bytes);
void untraced_copy(void* to, const void* from, size_t bytes);  // memcpy
#else
inline void trace_block() {}
inline void trace_barrier() {}
inline void trace_warp_barrier() {}
inline void trace_copy(const void*, size_t, const void*, size_t) {}
inline void untraced_copy(void* to, const void* from, size_t bytes) { std::memcpy(to, from, bytes); }
#endif

}  // namespace simt
