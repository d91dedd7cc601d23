// Replaces CUDA's header of this name when g++ compiles a kernel: the language, then its built-in functions.
//
// Every CUDA thread runs, in turn with the others of its block, on a fiber (block.h); blocks are spread over OS threads
// (launch.h). Undefined behaviour is an error where it can be detected, and otherwise gives a NaN pattern.
#pragma once
#include <math.h>
#include <stdint.h>

#define __host__
#define __device__
#define __constant__
#define __grid_constant__
#define __global__ static  // local statics of an external template get no redzones from AddressSanitizer
#define __launch_bounds__(...)  // launch_bounds.py reads both, and launch.cpp checks them
#define __cluster_dims__(...)
#define __align__(n) __attribute__((aligned(n)))
#ifdef SIMT_TRACE
#define __forceinline__ inline __attribute__((always_inline))
#else
#define __forceinline__ inline  // the compiler chooses, and takes a third less time
#endif
#ifdef __SANITIZE_ADDRESS__
#define __shared__ static  // thread_local has no redzones; launches then use one OS thread
#else
#define __shared__ thread_local
#endif

#include "vector_types.h"
//
#include "launch.h"
//
#include "atomics.h"
#include "intrinsics.h"
#include "warp.h"

enum cudaError_t { cudaSuccess };
using cudaStream_t = struct CUstream_st*;
