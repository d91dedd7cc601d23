// The copy engine (TMA): one thread asks for a box of a matrix, which lands in shared memory past all registers: sm_90, later.
//
// What lies outside of the matrix becomes zeros. Rows of the box stand 128 bytes apart, and 16-byte chunk c of a row stands
// where chunk c XOR (row % 8) would: bits 4 to 6 of the address XOR bits 7 to 9, so `to` should be a multiple of 1024. The
// bytes of the whole box, zeros too, count down the bytes that `barrier` waits for.
#pragma once
#include "mbarrier.cuh"
#include "tensor_map.cuh"

#ifdef __CUDACC__

__device__ __forceinline__ void tma_load(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row, int batch) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5}], [%2];" ::"r"(
            shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(column), "r"(row), "r"(batch)
        : "memory");
#else
    __trap();
#endif
}

#else
#include "../simt/tma.h"
#endif
