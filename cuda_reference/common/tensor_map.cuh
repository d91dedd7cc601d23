// A CUtensorMap, which describes a matrix in memory to the copy engine (tma.cuh), made on the host from plain numbers.
//
// The kernel takes it by value as `const __grid_constant__ CUtensorMap`. The driver encodes it; the runtime finds the driver's
// function, so that nothing links against libcuda. In the emulation it is a plain struct.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#include <cuda.h>
#include <cudaTypedefs.h>
#endif

#include "launch.cuh"

// Matrices (batch, rows, columns) whose columns are contiguous, copied in boxes of (rows, columns) with the 128-byte swizzle.
// Where to_tf32 is 1, elements are fp32, which the copy to shared memory rounds to the nearest tf32.
struct TiledTensor {
    int64_t address, element_bytes, to_tf32;
    int64_t sizes[3], strides[2];  // in elements; strides of a batch and of a row, whose bytes are multiples of 16
    int64_t box[2];                // at most 256 rows, 128 bytes of columns
};

#ifdef __CUDACC__

inline CUtensorMap encode(const TiledTensor& t) {
    CUtensorMap map{};
    if (t.sizes[0] == 0 || t.sizes[1] == 0 || t.sizes[2] == 0) return map;  // empty, and never copied
    static const auto encode_tiled = [] {
        void* function = nullptr;
        cudaDriverEntryPointQueryResult found;
        check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found));
        if (found != cudaDriverEntryPointSuccess) throw std::runtime_error("the driver has no cuTensorMapEncodeTiled");
        return reinterpret_cast<PFN_cuTensorMapEncodeTiled_v12000>(function);
    }();
    const auto type = t.to_tf32              ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
                      : t.element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                      : t.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                             : CU_TENSOR_MAP_DATA_TYPE_UINT32;
    const cuuint64_t sizes[3] = {cuuint64_t(t.sizes[2]), cuuint64_t(t.sizes[1]), cuuint64_t(t.sizes[0])};  // innermost first
    const cuuint64_t pitches[2] = {cuuint64_t(t.strides[1] * t.element_bytes), cuuint64_t(t.strides[0] * t.element_bytes)};
    const cuuint32_t box[3] = {cuuint32_t(t.box[1]), cuuint32_t(t.box[0]), 1}, steps[3] = {1, 1, 1};
    // What L2 fetches from DRAM at a time: rows that are whole lines of 128 bytes want the next ones soon, of others this is too much
    const bool lines = pitches[0] % 128 == 0;
    const auto fetched = lines ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
    const CUresult result = encode_tiled(&map, type, 3, reinterpret_cast<void*>(t.address), sizes, pitches, box, steps,
                                         CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                         fetched, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (result != CUDA_SUCCESS)
        throw std::runtime_error("cuTensorMapEncodeTiled refuses the tensor: error " + std::to_string(int(result)));
    return map;
}

#else

struct CUtensorMap {
    TiledTensor tensor;
};

inline CUtensorMap encode(const TiledTensor& t) {
    const auto refuse = [](const char* what) { throw std::runtime_error(std::string("a tensor map wants ") + what); };
    const auto bytes = [&](int64_t elements) { return elements * t.element_bytes; };
    if (t.sizes[0] == 0 || t.sizes[1] == 0 || t.sizes[2] == 0) return {t};
    if (t.to_tf32 && t.element_bytes != 4) refuse("fp32 to make tf32 of");
    if (t.address == 0 || t.address % 16 != 0) refuse("an address that is a multiple of 16");
    for (const int64_t stride : t.strides)
        if (stride <= 0 || bytes(stride) % 16 != 0 || bytes(stride) >> 40 != 0)
            refuse("strides of multiples of 16 bytes, above 0 and below 2^40");
    for (const int64_t size : t.sizes)
        if (size < 0 || size > int64_t(1) << 32) refuse("sizes up to 2^32");
    if (t.box[0] < 1 || t.box[0] > 256) refuse("a box of 1 to 256 rows");
    if (t.box[1] < 1 || bytes(t.box[1]) % 16 != 0 || bytes(t.box[1]) > 128)
        refuse("box rows of a multiple of 16 bytes, at most the 128 of the swizzle");
    return {t};
}

#endif
