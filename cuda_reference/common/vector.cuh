// 128-bit accesses where the address allows them.
#pragma once
#include <cstdint>

#include <cuda_runtime.h>

__device__ __forceinline__ bool is_aligned16(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }
