// Images of any strides copied into pixels whose channels lie side by side, in whole chunks of 16 bytes for each group, with
// zeros after a group's last channel: (N, H, W, groups, pitch), for a kernel that copies by chunks. Both operands of a kernel
// in one launch: the second would wait for the last block of the first.
//
// Reads and writes each element once: 4 bytes for one of 16 bits, which the product multiplies K / groups * R * S times. A block
// copies a patch of 8 KB, some channels of some pixels, through shared memory, where a channel's pixels are a row. All its loads
// are under way together, and 7 blocks run on an SM: 56 KB, of which DRAM's latency needs 20.
//
// In NCHW a lane reads 16 bytes of a plane, wherever the plane begins: an odd number of pixels puts each on an address of its
// own, so it reads the two aligned words around them and shifts. Element by element it takes eight times as many instructions
// to read, and those limit it to half the speed of a copy. This is how other strides are read, and filters of few taps.
#pragma once
#include "../../common/ldmatrix.cuh"
#include "../../common/overlap.cuh"
#include "../../conv2d/parts/splits.cuh"

namespace conv2d_weight {

constexpr int COPY_THREADS = 128, PATCH_BYTES = 8192, ROUNDS = PATCH_BYTES / 16 / COPY_THREADS;
constexpr int64_t NOWHERE = INT64_MIN / 2;  // an offset that is negative whatever is added: two of them, or a place in memory

// A copy. A run is pixels of which neighbours are found alike: those of an image, if they lie side by side (`dense`), or all.
struct Copied {
    int64_t blocks, columns, run, dense;  // columns: of a patch
    int64_t extent;                       // elements from the first in memory to the last
    int64_t H, W, groups, channels, pitch;
    ImagesStrides stride;

    // Where a column of the result lies in `from`; NOWHERE if it has zeros.
    __device__ __forceinline__ int64_t offset(int column) const {
        const int group = groups == 1 ? 0 : column / int(pitch), c = groups == 1 ? column : column % int(pitch);
        return group < groups && c < channels ? (group * channels + c) * stride.c : NOWHERE;
    }
};

// 16 of 32 bytes, without the first `skip`.
__device__ __forceinline__ uint4 shifted(const uint4& low, const uint4& high, unsigned skip) {
    unsigned word[] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) word[i] = skip & 8 ? word[i + 2] : word[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) word[i] = skip & 4 ? word[i + 1] : word[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) word[i] = unsigned((uint64_t(word[i + 1]) << 32 | word[i]) >> skip % 4 * 8);
    return make_uint4(word[0], word[1], word[2], word[3]);
}

// COLUMNS of the channels of as many pixels as make PATCH_BYTES.
template <class Bits, int COLUMNS> struct Patch {
    static constexpr int CHUNK = 16 / sizeof(Bits), PIXELS = PATCH_BYTES / sizeof(Bits) / COLUMNS, CHUNKS = PIXELS / CHUNK;
    static constexpr bool NARROW = COLUMNS == CHUNK;
    static_assert(NARROW || COLUMNS % 32 == 0, "a warp writes a chunk of pixels of 32 columns");
    static_assert(CHUNKS % 8 == 0, "chunks are swizzled within eight");

    uint4* const chunks;          // in shared memory, CHUNKS of each column
    int64_t image, first, start;  // the run, and of the first pixel its number in the run and in the result
    int column, count;            // pixels that exist

    __device__ __forceinline__ Patch(uint4* chunks, const Copied& of, unsigned block) : chunks(chunks) {
        const unsigned across = ceil_div(int(of.groups * of.pitch), COLUMNS), along = unsigned((of.run + PIXELS - 1) / PIXELS);
        column = block % across * COLUMNS;
        image = block / across / along;
        first = int64_t(block / across % along) * PIXELS;
        start = image * of.run + first;
        count = int(of.run - first < PIXELS ? of.run - first : PIXELS);
    }

    // Where a chunk of a row lies: swizzled so that the eight rows which ldmatrix reads together, or a warp's words of 32 bits,
    // are in different banks.
    __device__ __forceinline__ uint4* place(int row, int chunk) const {
        const int turn = sizeof(Bits) == 4 ? row / 4 % 8 : NARROW ? row % 2 * 4 : row / 8 % 4 * 2 + row % 2;
        return chunks + row * CHUNKS + (chunk ^ turn);
    }

    __device__ __forceinline__ Bits* element(int row, int pixel) const {
        return reinterpret_cast<Bits*>(place(row, pixel / CHUNK)) + pixel % CHUNK;
    }

    // The chunk that a thread reads of planes.
    __device__ __forceinline__ int row_of(int round) const { return (round * COPY_THREADS + threadIdx.x) / CHUNKS; }
    __device__ __forceinline__ int chunk_of(int round) const { return (round * COPY_THREADS + threadIdx.x) % CHUNKS; }

    // Reads planes, by 16 bytes.
    __device__ __forceinline__ void read_planes(const Bits* from, const Copied& of) const {
        const unsigned base = unsigned(reinterpret_cast<uintptr_t>(from) / sizeof(Bits));
        const auto skipped = [&](int64_t at) { return (base + unsigned(at)) % CHUNK; };
        const auto is_inside = [&](int64_t word) { return uint64_t(word) <= uint64_t(of.extent - CHUNK); };
        int64_t at[ROUNDS];
        uint4 low[ROUNDS], high[ROUNDS];
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            const int row = row_of(round), pixel = chunk_of(round) * CHUNK;
            const int64_t offset = of.offset(column + row);
            at[round] = pixel < count ? image * of.stride.n + first + pixel + offset : NOWHERE;
            const unsigned skip = skipped(at[round]);
            const Bits* const word = from + (at[round] - skip);
            low[round] = high[round] = make_uint4(0, 0, 0, 0);
            if (is_inside(at[round] - skip)) low[round] = *reinterpret_cast<const uint4*>(word);
            if (skip != 0 & is_inside(at[round] - skip + CHUNK)) high[round] = *reinterpret_cast<const uint4*>(word + CHUNK);
        }
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {  // apart from the loads, which are all under way
            const int row = row_of(round), pixel = chunk_of(round) * CHUNK;
            const unsigned skip = skipped(at[round]);
            *place(row, chunk_of(round)) = shifted(low[round], high[round], skip * sizeof(Bits));
            const bool whole = is_inside(at[round] - skip) & (skip == 0 | is_inside(at[round] - skip + CHUNK));
            if (at[round] >= 0 && !whole)  // at an end of the tensor
#pragma unroll 1
                for (int e = 0; e < min(CHUNK, count - pixel); ++e) *element(row, pixel + e) = from[at[round] + e];
        }
    }

    // Reads any strides, element by element, lanes along the smaller one. `offsets` are in shared memory.
    __device__ __forceinline__ void read_any(const Bits* from, const Copied& of, int64_t* offsets) const {
        int64_t *const of_pixel = offsets, *const of_column = offsets + PIXELS;
        for (int i = threadIdx.x; i < PIXELS; i += COPY_THREADS) {
            const conv2d::Position at(i < count ? first + i : 0, int(of.H), int(of.W));
            of_pixel[i] = i < count ? at.image * of.stride.n + at.p * of.stride.h + at.q * of.stride.w : NOWHERE;
        }
        for (int i = threadIdx.x; i < COLUMNS; i += COPY_THREADS) of_column[i] = of.offset(column + i);
        __syncthreads();  // the offsets are known
        const bool along_w = of.stride.w <= of.stride.c;
        constexpr int EACH = 8;
        Bits loaded[EACH];
        const auto row = [&](unsigned i) { return along_w ? i / PIXELS : i % COLUMNS; };
        const auto pixel = [&](unsigned i) { return along_w ? i % PIXELS : i / COLUMNS; };
#pragma unroll 1
        for (unsigned begin = threadIdx.x; begin < PIXELS * COLUMNS; begin += EACH * COPY_THREADS) {
#pragma unroll
            for (int round = 0; round < EACH; ++round) {  // apart from the stores, so that these loads are under way together
                const unsigned i = begin + round * COPY_THREADS;
                const int64_t at = of_pixel[pixel(i)] + of_column[row(i)];
                loaded[round] = at >= 0 ? from[at] : Bits(0);
            }
#pragma unroll
            for (int round = 0; round < EACH; ++round) {
                const unsigned i = begin + round * COPY_THREADS;
                *element(row(i), pixel(i)) = loaded[round];
            }
        }
    }

    // To pixels of so many columns: a lane 16 bytes of a pixel, a warp 32 columns of a chunk of pixels, or a chunk of 32 pixels.
    __device__ __forceinline__ void write(Bits* to, int64_t columns) const {
        const int lane = threadIdx.x % 32;
#pragma unroll
        for (int round = 0; round < ROUNDS; ++round) {
            const int unit = round * (COPY_THREADS / 32) + threadIdx.x / 32, halves = NARROW ? 1 : COLUMNS / 32;
            const int row = unit % halves * 32, chunk = unit / halves * (NARROW ? 32 / CHUNK : 1);
            int c, pixel;  // this lane's, of the patch
            __align__(16) unsigned words[4];
            if constexpr (sizeof(Bits) == 2) {
                const int quarter = lane % 8 / 2;  // of the warp's chunks: lane l gets words of the rows 2 (l % 4) and 2 (l % 4) + 1
                ldmatrix<true>(words, place(row + (NARROW ? 0 : quarter * 8) + lane / 8 * 2 + lane % 2, chunk + (NARROW ? quarter : 0)));
                c = row + (NARROW ? 0 : lane % 4 * 8);
                pixel = (chunk + (NARROW ? lane % 4 : 0)) * 8 + lane / 4;
            } else {
                c = row + (NARROW ? 0 : lane % 8 * 4);
                pixel = chunk * 4 + (NARROW ? lane : lane / 8);
#pragma unroll
                for (int i = 0; i < 4; ++i) words[i] = *element(c + i, pixel);
            }
            if (pixel >= count || column + c >= columns) continue;
            Bits* const run = to + (start + pixel) * columns + column + c;
            *reinterpret_cast<uint4*>(run) = make_uint4(words[0], words[1], words[2], words[3]);
        }
    }
};

template <class Bits, int COLUMNS>
__device__ __forceinline__ void copy(const Bits* from, Bits* to, const Copied& of, unsigned block, uint4* chunks, int64_t* offsets) {
    const Patch<Bits, COLUMNS> patch(chunks, of, block);
    if (of.dense)
        patch.read_planes(from, of);
    else
        patch.read_any(from, of, offsets);
    __syncthreads();  // the patch is complete
    patch.write(to, of.groups * of.pitch);
}

// One or two copies, the blocks of the first before those of the second.
template <class Bits>
__global__ void __launch_bounds__(COPY_THREADS, 7)  // of 72 registers
channels_last(const Bits* a, Bits* to_a, Copied of_a, const Bits* b, Bits* to_b, Copied of_b) {
    wait_for_earlier_kernels();
    constexpr int CHUNK = 16 / sizeof(Bits), MOST = PATCH_BYTES / 16 + CHUNK;  // pixels and columns of a patch
    __shared__ uint4 chunks[PATCH_BYTES / 16];
    __shared__ int64_t offsets[MOST];
    const bool second = blockIdx.x >= of_a.blocks;
    const Bits* const from = second ? b : a;
    Bits* const to = second ? to_b : to_a;
    const Copied of = second ? of_b : of_a;
    const unsigned block = blockIdx.x - unsigned(second ? of_a.blocks : 0);
    if (of.columns == CHUNK)
        copy<Bits, CHUNK>(from, to, of, block, chunks, offsets);
    else if (of.columns == 32)
        copy<Bits, 32>(from, to, of, block, chunks, offsets);
    else
        copy<Bits, 64>(from, to, of, block, chunks, offsets);
}

}  // namespace conv2d_weight
