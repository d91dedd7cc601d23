// The tensors that a launch was given, where the caller says how long they are (binding.cuh): what lies outside is not its own.
//
// Checked where that is cheap: atomics and the copy engine's stores. A kernel's plain accesses are the sanitizer's, and
// tests/memory's.
#pragma once
#include <cstdint>
#include <vector>

#include "fail.h"

namespace simt {

struct Range {
    uintptr_t first, end;
};

// Of the launch that runs on this OS thread, or is being prepared on it; nothing is known where there is none.
inline thread_local std::vector<Range> tensors;

Range shared_segment();  // where the block's __shared__ variables are (launch.cpp)

inline void check_inside(const char* what, const void* pointer, size_t bytes) {
    const auto first = reinterpret_cast<uintptr_t>(pointer);
    for (const Range& range : tensors)
        if (first >= range.first && first + bytes <= range.end) return;
    if (tensors.empty()) return;
    static thread_local const Range shared = shared_segment();
    if (first < shared.first || first + bytes > shared.end) fail(std::string(what) + " outside of every tensor of the launch");
}

}  // namespace simt
