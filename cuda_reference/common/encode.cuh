// encode(tensor): the CUtensorMap of a TiledTensor or a PixelTensor, compiled once for all modules.
//
// The driver encodes it; the runtime finds the driver's function, so that nothing links against libcuda.
#pragma once
#ifdef __CUDACC__
#include <cudaTypedefs.h>
#endif

#include <stdexcept>
#include <string>

#include "launch.cuh"
#include "tensor_map.cuh"

#ifdef __CUDACC__

// The driver's function of this name.
template <class Function> Function driver_function(const char* name) {
    void* function = nullptr;
    cudaDriverEntryPointQueryResult found;
    check(cudaGetDriverEntryPointByVersion(name, &function, 12000, cudaEnableDefault, &found));
    if (found != cudaDriverEntryPointSuccess) throw std::runtime_error(std::string("the driver has no ") + name);
    return reinterpret_cast<Function>(function);
}

inline void check_encoded(const char* name, CUresult result) {
    if (result != CUDA_SUCCESS)
        throw std::runtime_error(std::string(name) + " refuses the tensor: error " + std::to_string(int(result)));
}

// What L2 fetches from DRAM at a time: rows that are whole lines of 128 bytes want the next ones soon, of others this is too much
inline CUtensorMapL2promotion fetched_at_once(cuuint64_t pitch) {
    return pitch % 128 == 0 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
}

// The type of elements that are copied as they are, or rounded.
template <class Tensor> CUtensorMapDataType type_of(const Tensor& t) {
    return t.to_tf32              ? CU_TENSOR_MAP_DATA_TYPE_TFLOAT32
           : t.element_bytes == 1 ? CU_TENSOR_MAP_DATA_TYPE_UINT8
           : t.element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                  : CU_TENSOR_MAP_DATA_TYPE_UINT32;
}

inline CUtensorMap encode(const TiledTensor& t) {
    CUtensorMap map{};
    if (t.sizes[0] == 0 || t.sizes[1] == 0 || t.sizes[2] == 0) return map;  // empty, and never copied
    static const auto encode_tiled = driver_function<PFN_cuTensorMapEncodeTiled_v12000>("cuTensorMapEncodeTiled");
    const cuuint64_t sizes[3] = {cuuint64_t(t.sizes[2]), cuuint64_t(t.sizes[1]), cuuint64_t(t.sizes[0])};  // innermost first
    const cuuint64_t pitches[2] = {cuuint64_t(t.strides[1] * t.element_bytes), cuuint64_t(t.strides[0] * t.element_bytes)};
    const cuuint32_t box[3] = {cuuint32_t(t.box[1]), cuuint32_t(t.box[0]), 1}, steps[3] = {1, 1, 1};
    check_encoded("cuTensorMapEncodeTiled",
                  encode_tiled(&map, type_of(t), 3, reinterpret_cast<void*>(t.address), sizes, pitches, box, steps,
                               CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, fetched_at_once(pitches[0]),
                               CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    return map;
}

inline CUtensorMap encode(const PixelTensor& t) {
    CUtensorMap map{};
    if (t.sizes[0] == 0 || t.sizes[1] == 0 || t.sizes[2] == 0 || t.sizes[3] == 0) return map;
    static const auto encode_im2col = driver_function<PFN_cuTensorMapEncodeIm2col_v12000>("cuTensorMapEncodeIm2col");
    cuuint64_t sizes[4], pitches[3];  // innermost first, as are corners and steps
    for (int i = 0; i < 4; ++i) sizes[i] = t.sizes[3 - i];
    for (int i = 0; i < 3; ++i) pitches[i] = t.strides[2 - i] * t.element_bytes;
    const int first[2] = {int(t.first[1]), int(t.first[0])}, last[2] = {int(t.last[1]), int(t.last[0])};
    const cuuint32_t steps[4] = {1, cuuint32_t(t.steps[1]), cuuint32_t(t.steps[0]), 1};
    check_encoded("cuTensorMapEncodeIm2col",
                  encode_im2col(&map, type_of(t), 4, reinterpret_cast<void*>(t.address), sizes, pitches, first, last,
                                cuuint32_t(t.box[1]), cuuint32_t(t.box[0]), steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
                                CU_TENSOR_MAP_SWIZZLE_128B, fetched_at_once(pitches[0]), CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE));
    // Drivers up to 13.1 set a bit that is wrong for tensors of less than 128 KB; CUTLASS clears it, too
    // (include/cute/atom/copy_traits_sm90_im2col.hpp)
    static const int driver = [] {
        int version = 0;
        check(cudaDriverGetVersion(&version));
        return version;
    }();
    int64_t extent = t.sizes[3];
    for (int i = 0; i < 3; ++i) extent += (t.sizes[i] - 1) * t.strides[i];
    if (driver <= 13010 && extent * t.element_bytes < 128 * 1024) reinterpret_cast<uint64_t*>(&map)[1] &= ~(uint64_t(1) << 21);
    return map;
}

#else

[[noreturn]] inline void refuse_map(const char* what) { throw std::runtime_error(std::string("a tensor map wants ") + what); }

// What both kinds want.
template <class Tensor> void check_map(const Tensor& t) {
    const auto bytes = [&](int64_t elements) { return elements * t.element_bytes; };
    if (t.to_tf32 && t.element_bytes != 4) refuse_map("fp32 to make tf32 of");
    if (t.address == 0 || t.address % 16 != 0) refuse_map("an address that is a multiple of 16");
    for (const int64_t stride : t.strides)
        if (stride <= 0 || bytes(stride) % 16 != 0 || bytes(stride) >> 40 != 0)
            refuse_map("strides of multiples of 16 bytes, above 0 and below 2^40");
    for (const int64_t size : t.sizes)
        if (size < 0 || size > int64_t(1) << 32) refuse_map("sizes up to 2^32");
    if (t.box[1] < 1 || bytes(t.box[1]) % 16 != 0 || bytes(t.box[1]) > 128)
        refuse_map("box rows of a multiple of 16 bytes, at most the 128 of the swizzle");
}

inline CUtensorMap encode(const TiledTensor& t) {
    if (t.sizes[0] == 0 || t.sizes[1] == 0 || t.sizes[2] == 0) return {t, {}};
    check_map(t);
    if (t.box[0] < 1 || t.box[0] > 256) refuse_map("a box of 1 to 256 rows");
    return {t, {}};
}

inline CUtensorMap encode(const PixelTensor& t) {
    if (t.sizes[0] == 0 || t.sizes[1] == 0 || t.sizes[2] == 0 || t.sizes[3] == 0) return {{}, t};
    check_map(t);
    if (t.box[0] < 1 || t.box[0] > 1024) refuse_map("a box of 1 to 1024 pixels");
    for (int axis = 0; axis < 2; ++axis) {
        for (const int64_t corner : {t.first[axis], t.last[axis]})
            if (corner < -128 || corner > 127) refuse_map("corners from -128 to 127");
        if (t.steps[axis] < 1 || t.steps[axis] > 8) refuse_map("steps of 1 to 8");
        if (t.sizes[1 + axis] + t.last[axis] <= t.first[axis]) refuse_map("a pixel between its corners");
    }
    return {{}, t};
}

#endif
