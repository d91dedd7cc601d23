// The exception for a fault that CUDA reports to launch.cuh, compiled once for all modules: <string> takes nvcc longer than many a
// kernel.
#pragma once
#include <stdexcept>
#include <string>

#include "launch.cuh"

#ifdef __CUDACC__

void throw_error(cudaError_t error) {
    throw std::runtime_error(std::string(cudaGetErrorName(error)) + ": " + cudaGetErrorString(error));
}

#endif
