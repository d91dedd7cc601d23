// As much of CUDA as common/launch.cuh and encode.cuh take on the host; each call prints a line of JSON.
#pragma once
#include <cstdint>
#include <cstdio>
#include <string>
struct dim3 { unsigned x, y, z; };
using cudaStream_t = void*;
enum cudaError_t { cudaSuccess, cudaErrorInvalidValue };
inline const char* cudaGetErrorName(cudaError_t) { return "cudaErrorInvalidValue"; }
inline const char* cudaGetErrorString(cudaError_t) { return "invalid argument"; }
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
template <class Kernel> cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int bytes) {
    std::printf("[\"shared\", %d]\n", bytes);
    return bytes > 232448 ? cudaErrorInvalidValue : cudaSuccess;
}
enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization = 6 };
struct cudaLaunchAttribute { cudaLaunchAttributeID id; struct { int programmaticStreamSerializationAllowed; } val; };
struct cudaLaunchConfig_t {
    dim3 gridDim, blockDim;
    size_t dynamicSmemBytes;
    cudaStream_t stream;
    cudaLaunchAttribute* attrs;
    unsigned numAttrs;
};
template <class... P, class... A> cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* c, void (*)(P...), A... args) {
    const bool overlaps = c->numAttrs == 1 && c->attrs->id == 6 && c->attrs->val.programmaticStreamSerializationAllowed == 1;
    std::printf("[\"launch\", [%u, %u, %u], [%u, %u, %u], %zu, %zu, %u, %d", c->gridDim.x, c->gridDim.y, c->gridDim.z,
                c->blockDim.x, c->blockDim.y, c->blockDim.z, c->dynamicSmemBytes, size_t(c->stream), c->numAttrs, overlaps);
    (std::printf(", %g", double(args)), ...);
    std::printf("]\n");
    return cudaSuccess;
}
enum CUresult { CUDA_SUCCESS, CUDA_ERROR_INVALID_VALUE };
enum CUtensorMapDataType {
    CU_TENSOR_MAP_DATA_TYPE_UINT8,
    CU_TENSOR_MAP_DATA_TYPE_UINT16,
    CU_TENSOR_MAP_DATA_TYPE_UINT32,
    CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
};
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle {
    CU_TENSOR_MAP_SWIZZLE_NONE,
    CU_TENSOR_MAP_SWIZZLE_32B,
    CU_TENSOR_MAP_SWIZZLE_64B,
    CU_TENSOR_MAP_SWIZZLE_128B
};
enum CUtensorMapL2promotion {
    CU_TENSOR_MAP_L2_PROMOTION_NONE,
    CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
    CU_TENSOR_MAP_L2_PROMOTION_L2_256B
};
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN };
using cuuint64_t = uint64_t;
using cuuint32_t = uint32_t;
struct CUtensorMap { uint64_t encoded[16]; };
using PFN_cuTensorMapEncodeTiled_v12000 = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
    const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
    CUtensorMapFloatOOBfill);
inline CUresult encode_tiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                             const cuuint64_t* sizes, const cuuint64_t* pitches, const cuuint32_t* box, const cuuint32_t* steps,
                             CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                             CUtensorMapFloatOOBfill fill) {
    map->encoded[0] = 1;
    std::printf("[\"map\", %d, %u, %zu, [%zu, %zu, %zu], [%zu, %zu], ", type, rank, size_t(address), sizes[0], sizes[1],
                sizes[2], pitches[0], pitches[1]);
    std::printf("[%u, %u, %u], [%u, %u, %u], %d, %d, %d, %d]\n", box[0], box[1], box[2], steps[0], steps[1], steps[2],
                interleave, swizzle, promotion, fill);
    return size_t(address) % 16 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
using PFN_cuTensorMapEncodeIm2col_v12000 = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
    const cuuint64_t*, const int*, const int*, cuuint32_t, cuuint32_t, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
    CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
inline CUresult encode_im2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                              const cuuint64_t* sizes, const cuuint64_t* pitches, const int* first, const int* last,
                              cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps, CUtensorMapInterleave interleave,
                              CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
    map->encoded[1] = ~uint64_t(0);
    std::printf("[\"pixels\", %d, %u, %zu, [%zu, %zu, %zu, %zu], [%zu, %zu, %zu], ", type, rank, size_t(address), sizes[0],
                sizes[1], sizes[2], sizes[3], pitches[0], pitches[1], pitches[2]);
    std::printf("[%d, %d], [%d, %d], %u, %u, [%u, %u, %u, %u], %d, %d, %d, %d]\n", first[0], first[1], last[0], last[1],
                channels, pixels, steps[0], steps[1], steps[2], steps[3], interleave, swizzle, promotion, fill);
    return CUDA_SUCCESS;
}
inline int driver_version = 13010;
inline cudaError_t cudaDriverGetVersion(int* version) {
    *version = driver_version;
    return cudaSuccess;
}
enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum { cudaEnableDefault };
inline cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned, int,
                                                    cudaDriverEntryPointQueryResult* found) {
    const bool im2col = std::string(name) == "cuTensorMapEncodeIm2col";
    *function = im2col ? reinterpret_cast<void*>(&encode_im2col) : reinterpret_cast<void*>(&encode_tiled);
    *found = cudaDriverEntryPointSuccess;
    return cudaSuccess;
}
