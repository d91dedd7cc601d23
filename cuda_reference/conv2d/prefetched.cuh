// conv2d, prefetched: `direct`, but the next channel's inputs and filters are loaded while the present channel is multiplied.
//
// In `direct` a block of one warp loads a halo, waits for it (about 600 ns from DRAM), and reads every filter tap from global
// memory. Here two stages of shared memory alternate, each with a channel's halo and its filters for KT output channels.
// Elements of 32 and 64 bits are copied by cp.async, without registers; it cannot copy single elements of 16 bits, which wait
// in registers, HELD pieces and HELD taps per thread, and the rest of a huge filter is not prefetched. There is one barrier per
// channel instead of two, and a tap's KT values are a load or two of 128 bits. It costs twice the shared memory. Mirrors
// tritonkernels/conv2d/prefetched.py.
#pragma once
#include "../common/cp_async.cuh"
#include "../common/overlap.cuh"
#include "../common/shared.cuh"
#include "parts/halo.cuh"

namespace conv2d {

// The halo's pieces, rows of PIECE<T>, and the filters' elements (tap, k), k fastest: where they are in memory, for channel 0.
template <class T, int KT> struct Source {
    const T* plane;
    const T* filter;
    int first_h, first_w, k_inside;  // k_inside of KT filters exist
    Halo<T> shape;

    __device__ __forceinline__ int pieces() const { return shape.rows * shape.pitch / PIECE<T>; }
    __device__ __forceinline__ int h(int piece) const { return first_h + piece * PIECE<T> / shape.pitch; }
    __device__ __forceinline__ int w(int piece) const { return first_w - shape.before + piece * PIECE<T> % shape.pitch; }
    __device__ __forceinline__ int weights(const Geometry& g) const { return g.R * g.S * KT; }

    __device__ __forceinline__ const T* weight(int i, const Geometry& g, const Strides& stride) const {
        const int tap = i / KT;
        return filter + i % KT * stride.weight.k + tap / g.S * stride.weight.r + tap % g.S * stride.weight.s;
    }

    // The piece, where all of it lies in the image and is aligned; else null.
    __device__ __forceinline__ const T* whole(int piece, const Geometry& g, const Strides& stride) const {
        const int row = h(piece), col = w(piece);
        const T* const from = plane + row * stride.input.h + col * stride.input.w;
        const bool inside = row >= 0 && row < g.H && col >= 0 && col + PIECE<T> <= g.W;
        return inside && stride.input.w == 1 && is_aligned16(from) ? from : nullptr;
    }

    __device__ __forceinline__ const T* input(int piece, int i, const Geometry& g, const Strides& stride) const {
        const int row = h(piece), col = w(piece) + i;
        return row >= 0 && row < g.H && col >= 0 && col < g.W ? plane + row * stride.input.h + col * stride.input.w : nullptr;
    }

    __device__ __forceinline__ void advance(const Strides& stride) { plane += stride.input.c, filter += stride.weight.c; }
};

// A channel on its way to a stage: start(...), and when the present one is multiplied finish(...).
template <class T, int KT, bool BY_CP_ASYNC = sizeof(T) >= 4> struct Prefetch {
    // Nothing where `from` is null: zeros.
    __device__ __forceinline__ static void copy_element(T* to, const T* from, const T* somewhere) {
#pragma unroll
        for (int word = 0; word < int(sizeof(T) / 4); ++word)
            cp_async<4>(reinterpret_cast<unsigned*>(to) + word,
                        reinterpret_cast<const unsigned*>(from == nullptr ? somewhere : from) + word, from == nullptr ? 0 : 4);
    }

    __device__ __forceinline__ void start(T* halo, T* filters, const Source<T, KT>& next, const Geometry& g,
                                          const Strides& stride) {
        for (int piece = threadIdx.x; piece < next.pieces(); piece += THREADS) {
            T* const to = halo + piece * PIECE<T>;
            if (const T* const whole = next.whole(piece, g, stride)) {
                cp_async<16>(to, whole);
            } else {
#pragma unroll
                for (int i = 0; i < PIECE<T>; ++i) copy_element(to + i, next.input(piece, i, g, stride), next.filter);
            }
        }
        for (int i = threadIdx.x; i < next.weights(g); i += THREADS)
            copy_element(filters + i, i % KT < next.k_inside ? next.weight(i, g, stride) : nullptr, next.filter);
        cp_async_commit();
    }

    __device__ __forceinline__ void finish(T*, T*, const Source<T, KT>&, const Geometry&, const Strides&) { cp_async_wait<0>(); }
};

template <class T, int KT> struct Prefetch<T, KT, false> {
    static constexpr int HELD = 2;
    uint4 pieces[HELD];
    T weights[HELD];

    __device__ __forceinline__ static uint4 load_piece(int piece, const Source<T, KT>& next, const Geometry& g,
                                                       const Strides& stride) {
        if (const T* const whole = next.whole(piece, g, stride)) return *reinterpret_cast<const uint4*>(whole);
        T elements[PIECE<T>];
#pragma unroll
        for (int i = 0; i < PIECE<T>; ++i) {
            const T* const from = next.input(piece, i, g, stride);
            elements[i] = from == nullptr ? T(0.0f) : *from;
        }
        uint4 bits;
        std::memcpy(&bits, elements, sizeof bits);
        return bits;
    }

    __device__ __forceinline__ static T load_weight(int i, const Source<T, KT>& next, const Geometry& g, const Strides& stride) {
        return i % KT < next.k_inside ? *next.weight(i, g, stride) : T(0.0f);
    }

    __device__ __forceinline__ void start(T*, T*, const Source<T, KT>& next, const Geometry& g, const Strides& stride) {
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            const int at = threadIdx.x + i * THREADS;
            if (at < next.pieces()) pieces[i] = load_piece(at, next, g, stride);
            if (at < next.weights(g)) weights[i] = load_weight(at, next, g, stride);
        }
    }

    __device__ __forceinline__ void finish(T* halo, T* filters, const Source<T, KT>& next, const Geometry& g,
                                           const Strides& stride) {
        uint4* const to = reinterpret_cast<uint4*>(halo);
#pragma unroll
        for (int i = 0; i < HELD; ++i) {
            const int at = threadIdx.x + i * THREADS;
            if (at < next.pieces()) to[at] = pieces[i];
            if (at < next.weights(g)) filters[at] = weights[i];
        }
        for (int at = threadIdx.x + HELD * THREADS; at < next.pieces(); at += THREADS) to[at] = load_piece(at, next, g, stride);
        for (int at = threadIdx.x + HELD * THREADS; at < next.weights(g); at += THREADS)
            filters[at] = load_weight(at, next, g, stride);
    }
};

// A tap's weights, of KT output channels.
template <class T, int KT> __device__ __forceinline__ void load_weights(T (&to)[KT], const T* from) {
    using Word = std::conditional_t<sizeof to % 16 == 0, uint4, uint2>;
    static_assert(sizeof to % sizeof(Word) == 0, "whole words");
#pragma unroll
    for (int i = 0; i < int(sizeof to / sizeof(Word)); ++i) {
        const Word word = reinterpret_cast<const Word*>(from)[i];
        std::memcpy(reinterpret_cast<Word*>(to) + i, &word, sizeof word);
    }
}

template <class T, int KT>
__global__ void __launch_bounds__(THREADS, 8)
prefetched(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
           Strides stride) {
    wait_for_earlier_kernels();
    const Tile tile(blockIdx.x, g, TILE_H, TILE_W, KT);
    const int c_per_group = g.c_per_group(), k_per_group = g.k_per_group();
    const int first_k = tile.k, group = tile.group;

    const int x = threadIdx.x % TILE_W, y = threadIdx.x / TILE_W;  // this thread's position in the tile
    const T* const plane = input + tile.image * stride.input.n + group * c_per_group * stride.input.c;
    const int first_h = tile.p * g.step_h - g.padding_h, first_w = tile.q * g.step_w - g.padding_w;
    const Halo<T> shape(plane, first_w, g, stride);
    const int halo_size = shape.rows * shape.pitch, stage_size = halo_size + ceil_div(g.R * g.S * KT, PIECE<T>) * PIECE<T>;
    T* const stages = dynamic_shared<T>();

    Sum<T> sum[KT];
#pragma unroll
    for (int k = 0; k < KT; ++k)
        sum[k] = first_k + k < k_per_group ? bias_or_zero(bias, group * k_per_group + first_k + k, stride) : Sum<T>(0);

    const T* const filter = weight + (group * k_per_group + first_k) * stride.weight.k;
    Source<T, KT> next{plane, filter, first_h, first_w, k_per_group - first_k, shape};
    Prefetch<T, KT> prefetch;
    if (c_per_group > 0) {
        prefetch.start(stages, stages + halo_size, next, g, stride);
        prefetch.finish(stages, stages + halo_size, next, g, stride);
    }
    __syncthreads();  // the first channel has landed
    for (int c = 0; c < c_per_group; ++c) {
        T* const now = stages + c % 2 * stage_size;
        T* const other = stages + (c + 1) % 2 * stage_size;
        const bool more = c + 1 < c_per_group;
        if (more) {
            next.advance(stride);
            prefetch.start(other, other + halo_size, next, g, stride);
        }
        const T* tap = now + halo_size;
        for (int r = 0; r < g.R; ++r) {
            for (int s = 0; s < g.S; ++s, tap += KT) {
                const int h = y * g.step_h + r * g.dilation_h, w = x * g.step_w + s * g.dilation_w;  // within the halo
                const Sum<T> value = Sum<T>(now[h * shape.pitch + shape.before + w]);
                T weights[KT];
                load_weights(weights, tap);
#pragma unroll
                for (int k = 0; k < KT; ++k) sum[k] += Sum<T>(weights[k]) * value;
            }
        }
        if (more) prefetch.finish(other, other + halo_size, next, g, stride);
        __syncthreads();  // the next channel has landed, and this one has been read
    }

    const int p = tile.p + y, q = tile.q + x;
    if (p >= g.P || q >= g.Q) return;
    T* at = out + tile.image * stride.out.n + p * stride.out.h + q * stride.out.w;
#pragma unroll
    for (int k = 0; k < KT; ++k)
        if (first_k + k < k_per_group) at[(group * k_per_group + first_k + k) * stride.out.c] = T(sum[k]);
}

}  // namespace conv2d
