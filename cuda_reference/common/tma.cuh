// The copy engine (TMA): one thread requests a box of a matrix, which is copied to shared memory without registers. sm_90 and
// later.
//
// Elements outside of the matrix become zeros. Rows of the box are 128 bytes apart, and 16-byte chunk c of a row is stored as
// chunk c XOR (row % 8): bits 4 to 6 of the address XOR bits 7 to 9, so `to` should be a multiple of 1024. The bytes of the
// whole box, zeros included, count down the bytes that `barrier` waits for.
//
// In the other direction, tma_store writes the part of a box inside the matrix. Threads that wrote the box to shared memory
// call tma_store_fence and pass a barrier; then one thread requests the stores and commits them as a group. Shared memory may
// be written again once tma_store_wait<PENDING> has returned in that thread: all but the youngest PENDING groups have been
// read.
#pragma once
#include "mbarrier.cuh"
#include "tensor_map.cuh"

// A pixel of images (PixelTensor), and the place of a tap relative to it: 0 to 255.
struct Pixel { int image, row, column; };
struct Tap { unsigned short down, right; };

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

// The same box to the same place in each block of the cluster whose bit is set, and its bytes to the barrier there.
__device__ __forceinline__ void tma_load_multicast(void* to, const CUtensorMap& map, uint64_t* barrier, int column, int row,
                                                   int batch, unsigned blocks) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4, %5}], [%2], %6;" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(column), "r"(row), "r"(batch), "h"((unsigned short)blocks)
        : "memory");
#else
    __trap();
#endif
}

// A box of images: of the pixel and those after it, each moved by the tap, the channels from `channel` on.
__device__ __forceinline__ void tma_load_pixels(void* to, const CUtensorMap& map, uint64_t* barrier, int channel,
                                                const Pixel& pixel, const Tap& tap) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%3, %4, %5, %6}], [%2], {%7, %8};" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(barrier)), "r"(channel), "r"(pixel.column), "r"(pixel.row), "r"(pixel.image),
        "h"(tap.right), "h"(tap.down)
        : "memory");
#else
    __trap();
#endif
}

// True in one lane of a warp. Of a lane that is found in another way ptxas does not know that it is alone, and makes a loop over
// all lanes that may request of each request.
__device__ __forceinline__ bool elect_lane() {
    unsigned elected = 1;
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "{\n"
        ".reg .pred elected;\n"
        "elect.sync _|elected, 0xffffffff;\n"
        "selp.b32 %0, 1, 0, elected;\n"
        "}"
        : "=r"(elected));
#endif
    return elected != 0;
}

// Before its first use, which else would wait for it.
__device__ __forceinline__ void prefetch_tensor_map(const CUtensorMap& map) {
#if __CUDA_ARCH__ >= 900
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

#if __CUDA_ARCH__ >= 900
#define SM90(...) asm volatile(__VA_ARGS__)
#else
#define SM90(...) __trap()
#endif

__device__ __forceinline__ void tma_store(const CUtensorMap& map, const void* from, int column, int row, int batch) {
    SM90("cp.async.bulk.tensor.3d.global.shared::cta.bulk_group [%0, {%2, %3, %4}], [%1];" ::"l"(&map),
         "r"(shared_address(from)), "r"(column), "r"(row), "r"(batch)
         : "memory");
}
__device__ __forceinline__ void tma_store_fence() { SM90("fence.proxy.async.shared::cta;" ::: "memory"); }
__device__ __forceinline__ void tma_store_commit() { SM90("cp.async.bulk.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void tma_store_wait() {
    SM90("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

#undef SM90

#else
#include "../simt/tma.h"
#endif
