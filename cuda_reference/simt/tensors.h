// The memory of a launch's tensors, if the caller gives their sizes (binding.cuh); access outside of it is an error.
//
// Atomics and the copy engine's stores are checked, which is cheap. Plain accesses are checked by the sanitizer and by
// tests/memory.
#pragma once
#include <cstdint>
#include <vector>

#include "fail.h"

namespace simt {

struct Range {
    uintptr_t first, end;
};

// Those of the launch that runs on this OS thread or is being prepared on it; empty without one.
inline thread_local std::vector<Range> tensors;

void check_inside(const char* what, const void* pointer, size_t bytes);

}  // namespace simt
