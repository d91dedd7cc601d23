// Small index helpers that every design needs.
#pragma once
#include <cstdint>

#include <cuda_runtime.h>

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
