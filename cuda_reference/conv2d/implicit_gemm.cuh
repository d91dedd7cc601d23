// conv2d, implicit_gemm: a matrix product (pixels, taps) x (taps, output channels) whose left operand is never written.
//
// Over `direct`, which holds a few output channels of few pixels, a block owns BM output pixels and BN output channels of a group
// and reduces over all channels and filter taps in slices of BK: an input fetched once serves BN multiply-adds, a weight BM.
// im2col's copy, R * S times the input, is made in shared memory, a slice at a time (parts/pixels.cuh). The rest is as in matmul:
// slices fetched ahead by cp.async, fragments, mma.sync. On Hopper wgmma multiplies the same slices, which have TMA's layout,
// while the threads fetch the next. If C is no multiple of a chunk (an image has 3 channels), the reduction runs over (c, r, s)
// as one dimension, so that no tap is padded. IEEE FP32 and FP64 use the same tiles on CUDA cores.
//
// Where there are few tiles (batch 1), gridDim.y blocks share the reduction of each. The last to arrive adds their sums in order,
// so the bits do not depend on which block that is. Mirrors tritonkernels/conv2d/implicit_gemm.py.
// Glossary: BM x BN x BK is the block tile, WM x WN the warp tile.
#pragma once
#include "../common/add_splits.cuh"
#include "../common/overlap.cuh"
#include "../common/raster.cuh"
#include "../matmul/parts/products.cuh"
#include "parts/pixels.cuh"
#include "parts/residual.cuh"
#include "parts/thread_tile.cuh"

namespace conv2d {

// Stores the results of a group's output pixels: (pixel, channel of the group).
template <class T> struct Results {
    T* out;
    const T* bias;
    ImagesStrides stride;  // of out
    int64_t bias_step;
    int pixels, channels, P, Q, activation = matmul::NONE;

    __device__ __forceinline__ Results(T* out, const T* bias, int group, const Geometry& g, const Strides& stride)
        : out(out + group * g.k_per_group() * stride.out.c),
          bias(bias == nullptr ? nullptr : bias + group * g.k_per_group() * stride.bias.step),
          stride(stride.out),
          bias_step(stride.bias.step),
          pixels(g.N * g.P * g.Q),
          channels(g.k_per_group()),
          P(g.P),
          Q(g.Q) {}

    __device__ __forceinline__ T* of_pixel(int pixel) const {
        return out + pixel / Q / P * stride.n + pixel / Q % P * stride.h + pixel % Q * stride.w;
    }
};

// Writes runs of channels, as a matrix product does.
template <class T, int MS, int NS>
__device__ __forceinline__ void store(const matmul::LaneSums<float> (&sum)[MS][NS], const Results<T>& to, int pixel, int channel) {
    matmul::Strides strides{};
    strides.bias.step = to.bias_step;
    const matmul::Epilogue<float, T> epilogue(nullptr, to.bias, to.out, 1.0f, 0.0f, to.activation, strides, 0);
    float results[MS][NS][4];
    matmul::finish(results, sum, epilogue, pixel + threadIdx.x % 32 / 4, channel + threadIdx.x % 4 * 2, to.pixels, to.channels);
    matmul::for_runs<T, NS>(results, 0, [&](const auto& run, int row, int col) {
        if (pixel + row < to.pixels)
            matmul::store_run(run, to.of_pixel(pixel + row), 0, channel + col, 1, to.channels, 0, to.stride.c);
    });
}

template <class T, int TM, int TN>
__device__ __forceinline__ void store(const T (&sum)[TM][TN], const Results<T>& to, int pixel, int channel) {
#pragma unroll
    for (int m = 0; m < TM; ++m) {
        const int row = pixel + lane_row() + m * ROWS_OF_LANES;
        if (row >= to.pixels) continue;
        T* const at = to.of_pixel(row);
#pragma unroll
        for (int n = 0; n < TN; ++n) {
            const int col = channel + lane_col() + n * COLS_OF_LANES;
            if (col < to.channels) at[col * to.stride.c] = sum[m][n] + (to.bias == nullptr ? T(0) : to.bias[col * to.bias_step]);
        }
    }
}

// Adds the residual; `store` adds the bias and applies the activation.
template <class T, int MS, int NS>
__device__ __forceinline__ void follow(matmul::LaneSums<float> (&sum)[MS][NS], Results<T>& to, const Follows<T>& follows,
                                       int pixel, int channel) {
    const auto for_all = [&](const auto& change) {
        for_sums(sum, [&](float& number, int i) { change(number, i / 4 / NS * 16 + i % 4 / 2 * 8, i / 4 % NS * 8 + i % 2); });
    };
    follows.add(for_all, pixel + threadIdx.x % 32 / 4, channel + threadIdx.x % 4 * 2);
    to.activation = follows.activation;
}

// All but the store.
template <class T, int TM, int TN>
__device__ __forceinline__ void follow(T (&sum)[TM][TN], Results<T>& to, const Follows<T>& follows, int pixel, int channel) {
    const auto for_all = [&](const auto& change) {
        for_sums(sum, [&](T& number, int i) { change(number, i / TN * ROWS_OF_LANES, i % TN * COLS_OF_LANES); });
    };
    const int first = channel + lane_col();
    if (to.bias != nullptr)
        for_all([&](T& number, int, int col) {
            if (first + col < to.channels) number += to.bias[(first + col) * to.bias_step];
        });
    to.bias = nullptr;
    follows.add(for_all, pixel + lane_row(), first);
    follows.activate(for_all);
}

enum class Math { FFMA, MMA, WGMMA };  // on CUDA cores; mma.sync; Hopper's wgmma

// The filters' rows, of one group after the other, are `pitch` apart and lie in the order of `Copies`. A block of gridDim.y
// takes `split_size` of the reduction, whole slices. FOLLOWS: residual (or null) and activation are not ignored.
template <class T, Math MATH, int BM, int BN, int BK, int WM, int WN, int STAGES, bool CHUNKED, bool FOLLOWS = false>
__global__ void __launch_bounds__(BM / WM * (BN / WN) * 32, MATH == Math::WGMMA && BN <= 128 && CHUNKED ? 512 / (2 * BM) : 1)
implicit_gemm(const T* __restrict__ input, const T* __restrict__ filters, const T* __restrict__ bias, T* __restrict__ out,
              const Tap* __restrict__ taps, Sum<T>* partial, int* counters, Geometry g, Strides stride, int64_t pitch,
              int split_size, int band, const T* residual, ImagesStrides of_residual, int activation) {
    wait_for_earlier_kernels();
    static_assert(BM % WM == 0 && BN % WN == 0, "warp tiles cover the block tile exactly");
    static_assert((WM & (WM - 1)) == 0 && (WN & (WN - 1)) == 0, "SwizzledTile::load adds by XOR");
    constexpr int THREADS = BM / WM * (BN / WN) * 32, STEPS = BK * sizeof(T) / (MATH == Math::FFMA ? 16 : 32);
    using ATile = matmul::SwizzledTile<T, true, BM, BK, true>;
    using BTile = matmul::SwizzledTile<T, false, BN, BK, true>;
    using Copies = std::conditional_t<CHUNKED, ChannelCopies<ATile, THREADS, STEPS - 1>, GatheredCopies<ATile, THREADS, STEPS - 1>>;

    const int channels = g.c_per_group(), filters_of_group = g.k_per_group();
    const int tiles_m = ceil_div(g.N * g.P * g.Q, BM), tiles_n = ceil_div(filters_of_group, BN);
    const int group = blockIdx.x / (tiles_m * tiles_n);
    const TileIndex tile = rasterize(blockIdx.x % (tiles_m * tiles_n), tiles_m, tiles_n, band);
    const int first_pixel = tile.m * BM, first_filter = tile.n * BN, warp = threadIdx.x / 32;
    const int row = warp / (BN / WN) * WM, col = warp % (BN / WN) * WN;  // of the warp tile in the block tile
    const int first_k = blockIdx.y * split_size, length = min(channels * g.R * g.S - first_k, split_size);

    matmul::Slices<ATile, BTile, 1, STAGES, STEPS, THREADS, Copies> slices(
        Copies(input + group * channels * stride.input.c, taps, first_pixel, first_k, g, stride.input),
        {filters + group * filters_of_group * pitch + first_k, first_filter, filters_of_group, pitch, 1, 0});
    const auto finish = [&](auto& sum) {
        Results<T> results(out, bias, group, g, stride);
        if (!::add_splits<THREADS, 2>(sum, partial, counters)) return;
        if constexpr (FOLLOWS) {
            const T* const of_group = residual == nullptr ? nullptr : residual + group * filters_of_group * of_residual.c;
            const Follows<T> follows{of_group, of_residual, activation, results.pixels, results.channels, g.P, g.Q};
            follow(sum, results, follows, first_pixel + row, first_filter + col);
        }
        store(sum, results, first_pixel + row, first_filter + col);
    };
    if constexpr (MATH == Math::WGMMA) {
        matmul::LaneSums<float> sum[WM / 16][WN / 8] = {};
        matmul::multiply_by_wgmma(sum, slices, length, row);
        finish(sum);
    } else if constexpr (MATH == Math::MMA) {
        matmul::LaneSums<float> sum[WM / 16][WN / 8] = {};
        matmul::multiply_by_mma(sum, slices, length, row, col);
        finish(sum);
    } else {
        T sum[WM / ROWS_OF_LANES][WN / COLS_OF_LANES] = {};
        const LanePlaces<ATile, BTile> places(row, col);
        slices.walk_in_place(length, [&](int stage, int step) {
            multiply_add(sum, slices.a_tile(stage, 0), slices.b_tile(stage, 0), places, step);
        });
        finish(sum);
    }
}

}  // namespace conv2d
