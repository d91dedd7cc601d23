// Images of any strides copied into pixels whose channels lie side by side, in whole chunks of 16 bytes for each group, with
// zeros after a group's last channel: (N, H, W, groups, pitch), for a kernel that copies by chunks.
//
// Reads and writes each element once: 4 bytes for one of 16 bits, which the product multiplies K / groups * R * S times.
#pragma once
#include "../../common/overlap.cuh"
#include "../../conv2d/parts/splits.cuh"

namespace conv2d_weight {

constexpr int COPY_THREADS = 256, OF_PATCH = 4096;  // elements that a block copies

// In a patch.
struct Entry { int pixel, column; };

// A block copies COLUMNS of the channels of OF_PATCH / COLUMNS pixels, through shared memory: lanes read along the smaller stride
// and write 16 bytes of channels each. Rows of the patch are an odd number of words apart, so that neither has bank conflicts.
template <class Bits, int COLUMNS>
__global__ void __launch_bounds__(COPY_THREADS)
channels_last(const Bits* __restrict__ from, Bits* __restrict__ to, int64_t pixels, int H, int W, int groups, int channels,
              int pitch, ImagesStrides stride) {
    wait_for_earlier_kernels();
    constexpr int PIXELS = OF_PATCH / COLUMNS;
    __shared__ __align__(16) Bits patch[PIXELS][COLUMNS + 4 / sizeof(Bits)];
    __shared__ int64_t of_pixel[PIXELS], of_column[COLUMNS];  // offsets in `from`, -1 where there is none
    const int columns = groups * pitch, patches = ceil_div(columns, COLUMNS);
    const int64_t first_pixel = int64_t(blockIdx.x / patches) * PIXELS;
    const int first_column = blockIdx.x % patches * COLUMNS;
    for (int i = threadIdx.x; i < PIXELS; i += COPY_THREADS) {
        const bool exists = first_pixel + i < pixels;
        const conv2d::Position at(exists ? first_pixel + i : 0, H, W);
        of_pixel[i] = exists ? at.image * stride.n + at.p * stride.h + at.q * stride.w : -1;
    }
    for (int i = threadIdx.x; i < COLUMNS; i += COPY_THREADS) {
        const int group = (first_column + i) / pitch, c = (first_column + i) % pitch;
        of_column[i] = group < groups && c < channels ? int64_t(group * channels + c) * stride.c : -1;
    }
    __syncthreads();  // the offsets are known
    const bool along_w = stride.w <= stride.c;
    constexpr int ROUNDS = OF_PATCH / COPY_THREADS, CHUNK = 16 / sizeof(Bits);
    Bits loaded[ROUNDS];
    const auto place = [&](int round) -> Entry {
        const int i = round * COPY_THREADS + threadIdx.x;
        return along_w ? Entry{i % PIXELS, i / PIXELS} : Entry{i / COLUMNS, i % COLUMNS};
    };
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) {  // apart from the stores, so that all loads are under way together
        const Entry at = place(round);
        const int64_t pixel = of_pixel[at.pixel], column = of_column[at.column];
        loaded[round] = pixel >= 0 && column >= 0 ? from[pixel + column] : Bits(0);
    }
#pragma unroll
    for (int round = 0; round < ROUNDS; ++round) patch[place(round).pixel][place(round).column] = loaded[round];
    __syncthreads();  // the patch is complete
#pragma unroll
    for (int round = 0; round < ROUNDS / CHUNK; ++round) {  // by 16 bytes
        const int i = round * COPY_THREADS + threadIdx.x, pixel = i / (COLUMNS / CHUNK), column = i % (COLUMNS / CHUNK) * CHUNK;
        if (first_pixel + pixel >= pixels || first_column + column >= columns) continue;
        const auto* const words = reinterpret_cast<const unsigned*>(&patch[pixel][column]);
        Bits* const chunk = to + (first_pixel + pixel) * columns + first_column + column;
        *reinterpret_cast<uint4*>(chunk) = make_uint4(words[0], words[1], words[2], words[3]);
    }
}

}  // namespace conv2d_weight
