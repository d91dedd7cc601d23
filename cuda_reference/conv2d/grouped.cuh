// conv2d, grouped: a thread owns a vertical run of 7 outputs of KT output channels of one group.
//
// With few channels a group a block of `direct` has too little to reuse its halo for, and `implicit_gemm` has tiles that are
// mostly empty. The reuse is in inputs: from a register, one is multiplied by up to R taps of a column times KT output
// channels. Per channel and column of 3 taps, with KT = 8, that is 168 multiply-adds for 9 inputs and 6 loads of taps, which
// lie in shared memory as (channel, r, s, output channel), so that a load brings four.
//
// LANES = 1: lanes lie along W, a load brings one input of each and taps are a broadcast. LANES = 8, for channels_last: eight
// lanes lie along the output channels, a load brings CT channels of a pixel, the same piece for all lanes of a group, and
// stores are as wide. TAPS is R and S, unrolled, where taps are neighbours and outputs STEP rows apart, so that inputs slide;
// 0 takes any filter, tap by tap. Mirrors tritonkernels/conv2d/grouped.py.
#pragma once
#include "../common/overlap.cuh"
#include "parts/filters.cuh"
#include "parts/runs.cuh"

namespace conv2d {

constexpr int OUTPUTS = 7;  // in a run

// Threads per block: more for eight lanes, so that more threads share the filters, which take long to load.
template <int LANES> constexpr int THREADS_OF = LANES > 1 ? 256 : 128;

// Blocks per SM for which sums and inputs fit in registers: otherwise ptxas spills a few to fit one more.
template <class T> constexpr int resident(int KT, int LANES, int STEP) {
    if (sizeof(T) > 4) return LANES > 1 ? 1 : 2;
    if (LANES > 1) return KT > 4 ? 1 : 2;
    return KT > 4 || STEP > 1 ? 4 : 5;
}

// sum += a tap of CT channels, `apart` from one to the next, times the input of each output, STEP apart in `column`.
template <class Layout, int STEP, int KT, int CT, int COUNT, class Value>
__device__ __forceinline__ void multiply_tap(Value (&sum)[OUTPUTS][KT], const Value (&column)[COUNT][CT], int first,
                                             const Value* tap, int apart) {
#pragma unroll
    for (int c = 0; c < CT; ++c) {
        Value taps[KT];
        Layout::load(taps, tap + c * apart);
#pragma unroll
        for (int j = 0; j < OUTPUTS; ++j)
#pragma unroll
            for (int k = 0; k < KT; ++k) sum[j][k] += taps[k] * column[first + j * STEP][c];
    }
}

// Block -> (positions (image, run, column), LANES tiles of KT output channels of a group), the last fastest; the filters of
// `staged` channels at a time are in shared memory. FOLLOWS: residual (or null) and activation are not ignored.
template <class T, int KT, int CT, int LANES, int TAPS, int STEP, bool FOLLOWS = false>
__global__ void __launch_bounds__(THREADS_OF<LANES>, resident<T>(KT, LANES, STEP))
grouped(const T* __restrict__ input, const T* __restrict__ weight, const T* __restrict__ bias, T* __restrict__ out, Geometry g,
        Strides stride, int staged, const T* residual, ImagesStrides of_residual, int activation) {
    wait_for_earlier_kernels();
    using Layout = Filters<KT, LANES>;
    Sum<T>* const filters = dynamic_shared<Sum<T>>();
    const int per_group = g.k_per_group(), tiles = ceil_div(per_group, KT), blocks_k = ceil_div(g.groups * tiles, LANES);
    const int lane = threadIdx.x % LANES, position = threadIdx.x / LANES;
    const int first_tile = blockIdx.x % blocks_k * LANES, tile = first_tile + lane;
    const int group = tile / tiles, k = tile % tiles * KT;  // within the group
    const int first_k = first_tile / tiles * per_group + first_tile % tiles * KT;
    int64_t index = int64_t(blockIdx.x / blocks_k) * (THREADS_OF<LANES> / LANES) + position;
    const int q = take(index, g.Q), p = take(index, ceil_div(g.P, OUTPUTS)) * OUTPUTS, image = int(index);
    const bool inside = image < g.N && group < g.groups;

    Sum<T> sum[OUTPUTS][KT];
#pragma unroll
    for (int i = 0; i < KT; ++i) {
        const Sum<T> first_term = inside && k + i < per_group ? bias_or_zero(bias, group * per_group + k + i, stride) : Sum<T>(0);
#pragma unroll
        for (int j = 0; j < OUTPUTS; ++j) sum[j][i] = first_term;
    }

    const int c_per_group = g.c_per_group(), h = p * g.step_h - g.padding_h, first_w = q * g.step_w - g.padding_w;
    const T* planes = input + image * stride.input.n + group * c_per_group * stride.input.c;
    planes += h * stride.input.h + first_w * stride.input.w;
    constexpr int PITCH = Layout::PITCH;
    const int taps = TAPS > 0 ? TAPS * TAPS : g.R * g.S;
    for (int c = 0; c < c_per_group; c += staged) {
        const int here = min(staged, c_per_group - c);
        if (c > 0) __syncthreads();  // all threads have read the previous filters
        stage_filters<Layout, TAPS>(filters, weight + c * stride.weight.c, here, first_k, g, stride);
        __syncthreads();
        const Sum<T>* tap = filters + lane * Layout::UNIT;
        if constexpr (TAPS > 0) {
            const unsigned rows = inside ? rows_inside<ROWS<OUTPUTS, TAPS, STEP>>(h, 1, g) : 0;
            constexpr int UNROLL = TAPS == 3 && STEP == 1 && LANES == 1 ? TAPS : 1;  // what registers are left for
            const int below = int(stride.input.h * sizeof(T));
            const int64_t right = LANES == 1 ? 1 : stride.input.w;  // known, it costs no arithmetic
            for (int i = 0; i < here; i += CT, planes += CT * stride.input.c, tap += CT * taps * PITCH) {
#pragma unroll(UNROLL)
                for (int s = 0; s < TAPS; ++s) {
                    Sum<T> column[ROWS<OUTPUTS, TAPS, STEP>][CT];
                    load_column(column, planes + s * right, below, unsigned(first_w + s) < unsigned(g.W) ? rows : 0);
#pragma unroll
                    for (int r = 0; r < TAPS; ++r)
                        multiply_tap<Layout, STEP>(sum, column, r, tap + (r * TAPS + s) * PITCH, taps * PITCH);
                }
            }
        } else {
            for (int i = 0; i < here; i += CT, planes += CT * stride.input.c, tap += (CT - 1) * taps * PITCH)
                for (int r = 0; r < g.R; ++r) {
                    const unsigned rows = inside ? rows_inside<OUTPUTS>(h + r * g.dilation_h, g.step_h, g) : 0;
                    for (int s = 0; s < g.S; ++s, tap += PITCH) {
                        Sum<T> column[OUTPUTS][CT];
                        const T* at = planes + r * g.dilation_h * stride.input.h + s * g.dilation_w * stride.input.w;
                        const bool in_row = unsigned(first_w + s * g.dilation_w) < unsigned(g.W);
                        load_column(column, at, int64_t(g.step_h * stride.input.h * sizeof(T)), in_row ? rows : 0);
                        multiply_tap<Layout, 1>(sum, column, 0, tap, taps * PITCH);
                    }
                }
        }
    }

    if (!inside) return;
    if constexpr (FOLLOWS) {
        const Follows<T> follows{residual, of_residual, activation, 0, (group + 1) * per_group, g.P, g.Q};
        if constexpr (LANES > 1) {
            finish_run(sum, follows, image, group * per_group + k, p, q, g);
        } else {
            const auto for_all = [&](const auto& change) {
#pragma unroll
                for (int j = 0; j < OUTPUTS; ++j)
#pragma unroll
                    for (int i = 0; i < KT; ++i) change(sum[j][i], i, j, 0);
            };
            follows.finish(for_all, image, group * per_group + k, p, q);
        }
    }
    T* const at = out + image * stride.out.n + (group * per_group + k) * stride.out.c + p * stride.out.h + q * stride.out.w;
    if constexpr (LANES > 1) {
        store_run(sum, at, p, g, stride);
    } else {
#pragma unroll
        for (int j = 0; j < OUTPUTS; ++j)
#pragma unroll
            for (int i = 0; i < KT; ++i)
                if (p + j < g.P && k + i < per_group) at[i * stride.out.c + j * stride.out.h] = T(sum[j][i]);
    }
}

}  // namespace conv2d
