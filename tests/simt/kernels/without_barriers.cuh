// gemm::tiled as if its author had forgotten every barrier.
#pragma once
#include <cuda_runtime.h>

#define __syncthreads() static_cast<void>(0)
#include "gemm/tiled.cuh"
