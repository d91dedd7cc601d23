// Slices of the matrix (pixels, taps) that im2col would write. It exists only in shared memory, in the tile's layout
// (matmul/parts/swizzled_tile.cuh); the padding around the image is zeros.
//
// A thread finds its pixels once, before the loop. The loop has no division: taps advance by increments, or come from a table.
#pragma once
#include "../../matmul/parts/swizzled_tile.cuh"
#include "taps.cuh"

namespace conv2d {

template <int BYTES>
using Bits = std::conditional_t<BYTES == 2, uint16_t, std::conditional_t<BYTES == 4, uint32_t, uint64_t>>;

// An output pixel's first tap: its input, in a group's first channel, and the row and column of that.
template <class T> struct Pixel {
    const T* from;
    int h, w;

    // `index` counts to N * P * Q, q fastest; pixels from there on have no input.
    __device__ __forceinline__ void find(const T* input, int64_t index, const Geometry& g, const ImagesStrides& stride) {
        const bool exists = index < int64_t(g.N) * g.P * g.Q;
        const int pixel = exists ? int(index) : 0, q = pixel % g.Q, p = pixel / g.Q % g.P, image = pixel / g.Q / g.P;
        const int row = p * g.step_h - g.padding_h;
        w = q * g.step_w - g.padding_w;
        from = input + image * stride.n + row * stride.h + w * stride.w;
        h = exists ? row : FAR;
    }

    __device__ __forceinline__ bool inside(int tap_h, int tap_w, int H, int W) const {
        return is_inside(h, w, tap_h, tap_w, H, W);
    }
};

// By cp.async: 16 bytes, neighbouring channels of one tap. Channels must be contiguous, a whole number of chunks, and every
// pixel aligned. The reduction's order is (r, s, c). Neighbouring lanes copy neighbouring channels.
template <class Tile, int THREADS, int PARTS> struct ChannelCopies {
    using T = typename Tile::Element;
    using Places = matmul::TileCopies<Tile, THREADS, PARTS>;
    static constexpr bool PAST_REGISTERS = true;
    static constexpr int COUNT = Places::COUNT;

    struct Place {  // in the reduction
        int c, r, s;
    };

    Pixel<T> pixels[COUNT];
    Place place, step;  // of this thread's chunk in the next slice; a slice's length
    int channels, first_k, H, W, R, S, dilation_h, dilation_w;
    int64_t ih, iw;

    __device__ __forceinline__ Place place_of(int k) const {
        const int tap = k / channels;
        return {k % channels, tap / S, tap % S};
    }

    __device__ __forceinline__ ChannelCopies(const T* input, const Tap*, int64_t first_pixel, int first_k, const Geometry& g,
                                             const ImagesStrides& stride)
        : channels(g.c_per_group()),
          first_k(first_k),
          H(g.H),
          W(g.W),
          R(g.R),
          S(g.S),
          dilation_h(g.dilation_h),
          dilation_w(g.dilation_w),
          ih(stride.h),
          iw(stride.w) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            pixels[i].find(input, first_pixel + Places::row() + i * Places::STEP, g, stride);
        place = place_of(first_k + Places::column());
        step = place_of(Tile::DEPTH);
    }

    __device__ __forceinline__ void copy_from(T* tile, const Place& at, bool exists, int part, int parts) const {
        const int h = at.r * dilation_h, w = at.s * dilation_w;
        const int64_t offset = h * ih + w * iw + at.c;
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            if (i * parts / COUNT != part) continue;
            const bool inside = exists && pixels[i].inside(h, w, H, W);
            cp_async<16>(Places::place(tile, i), pixels[i].from + offset, inside ? 16 : 0);
        }
    }

    __device__ __forceinline__ void copy_tail(T* tile, int k, int, int64_t) const {
        const Place at = place_of(first_k + k + Places::column());
        copy_from(tile, at, at.r < R, 0, 1);
    }

    __device__ __forceinline__ void copy(T* tile, int part, int64_t) const { copy_from(tile, place, true, part, PARTS); }

    __device__ __forceinline__ void advance() {
        place.c += step.c;
        place.s += step.s;
        place.r += step.r;
        if (place.c >= channels) place.c -= channels, ++place.s;
        if (place.s >= S) place.s -= S, ++place.r;
    }
};

// Through registers, element by element, of any strides, by a table of taps in the order (c, r, s). A lane fills whole chunks of
// one pixel and its neighbour the next pixel's: along W loads are contiguous, and stores of 16 bytes use all banks.
template <class Tile, int THREADS, int PARTS> struct GatheredCopies {
    using T = typename Tile::Element;
    using Element = Bits<sizeof(T)>;
    static constexpr bool PAST_REGISTERS = false;
    static constexpr int CHUNKS_APART = THREADS / Tile::ROWS, COUNT = Tile::CHUNKS / CHUNKS_APART;
    static_assert(THREADS % Tile::ROWS == 0 && Tile::CHUNKS % CHUNKS_APART == 0, "a thread stays in its pixel");

    Pixel<T> pixel;
    const Tap* taps;  // of this thread's first chunk in the next slice
    int H, W;
    Element held[COUNT][Tile::CHUNK];

    __device__ __forceinline__ static int row() { return threadIdx.x % Tile::ROWS; }
    __device__ __forceinline__ static int chunk(int i) { return threadIdx.x / Tile::ROWS + i * CHUNKS_APART; }

    __device__ __forceinline__ GatheredCopies(const T* input, const Tap* taps, int64_t first_pixel, int first_k, const Geometry& g,
                                              const ImagesStrides& stride)
        : taps(taps + first_k + chunk(0) * Tile::CHUNK), H(g.H), W(g.W) {
        pixel.find(input, first_pixel + row(), g, stride);
    }

    __device__ __forceinline__ void fetch(int i, int first_k) {
#pragma unroll
        for (int e = 0; e < Tile::CHUNK; ++e) {
            const int4 bits = reinterpret_cast<const int4*>(taps)[first_k + i * CHUNKS_APART * Tile::CHUNK + e];  // one load
            Tap tap;
            std::memcpy(&tap, &bits, sizeof tap);
            const bool inside = pixel.inside(tap.h, tap.w, H, W);
            held[i][e] = inside ? reinterpret_cast<const Element*>(pixel.from)[tap.offset] : Element(0);
        }
    }

    __device__ __forceinline__ void put_chunk(T* tile, int i) const {
        uint4 bits;
        std::memcpy(&bits, held[i], sizeof bits);
        *reinterpret_cast<uint4*>(tile + Tile::at(row(), chunk(i))) = bits;
    }

    __device__ __forceinline__ void copy_tail(T* tile, int first_k, int, int64_t) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) {
            fetch(i, first_k);
            put_chunk(tile, i);
        }
    }

    __device__ __forceinline__ void copy(T*, int part, int64_t) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (i * PARTS / COUNT == part) fetch(i, 0);
    }

    __device__ __forceinline__ void put(T* tile, int part) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (i * PARTS / COUNT == part) put_chunk(tile, i);
    }

    __device__ __forceinline__ void advance() { taps += Tile::DEPTH; }
};

}  // namespace conv2d
