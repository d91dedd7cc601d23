// A CUtensorMap, which describes matrices or images in memory to the copy engine (tma.cuh), and the plain numbers that the host
// makes it of (encode.cuh).
//
// The kernel takes it by value as `const __grid_constant__ CUtensorMap`. In the emulation it is a plain struct.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#include <cuda.h>
#endif

// Matrices (batch, rows, columns) whose columns are contiguous, copied in boxes of (rows, columns) with the 128-byte swizzle.
// Where to_tf32 is 1, elements are fp32, which the copy to shared memory rounds to the nearest tf32.
struct TiledTensor {
    int64_t address, element_bytes, to_tf32;
    int64_t sizes[3], strides[2];  // in elements; strides of a batch and of a row, whose bytes are multiples of 16
    int64_t box[2];                // at most 256 rows, 128 bytes of columns
};

// Images (N, H, W, C) whose channels are contiguous, copied in boxes of (pixels, channels) with the 128-byte swizzle: a row for
// each pixel, one after the other along W, H and N, in steps (im2col mode). They go through the rows `first[0]` to
// H - 1 + `last[0]` and the columns `first[1]` to W - 1 + `last[1]` of each image, which may begin or end outside of it: the
// inputs of a tap of a convolution. A request adds the place of its tap to all pixels. to_tf32 is a TiledTensor's.
struct PixelTensor {
    int64_t address, element_bytes, to_tf32;
    int64_t sizes[4], strides[3];          // in elements; strides of an image, a row and a pixel, of multiples of 16 bytes
    int64_t first[2], last[2], steps[2];   // along H and W: -128 to 127, steps 1 to 8
    int64_t box[2];                        // at most 1024 pixels, 128 bytes of channels
};

#ifndef __CUDACC__

struct CUtensorMap {
    TiledTensor tensor;
    PixelTensor pixels;  // one of them, by its box
};

#endif
