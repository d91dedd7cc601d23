// A block's part of the weight as a matrix per group: K / groups rows, C / groups * R * S columns (c, r, s). And its positions.
#pragma once
#include "../../conv2d/parts/splits.cuh"
#include "../../conv2d/parts/taps.cuh"
#include "operands.cuh"

namespace conv2d_weight {

using conv2d::FAR;
using conv2d::Position;
using conv2d::Sum;

constexpr int THREADS = 128;

// block -> (group, tile of rows, tile of columns), the last fastest; and the split, with its range of positions.
struct Tile {
    int group, first_m, first_n, count_m, count_n;  // rows and columns of the group
    int64_t first, end;                             // positions

    // `columns`: of a group. The index-th tile, with `count` positions from `first` on.
    __device__ __forceinline__ Tile(const Geometry& g, int columns, int BM, int BN, int index, int64_t first, int64_t count)
        : first(first), end(min(first + count, int64_t(g.N) * g.P * g.Q)) {
        const int rows = g.k_per_group(), tiles_n = ceil_div(columns, BN), tiles_m = ceil_div(rows, BM);
        first_n = index % tiles_n * BN, first_m = index / tiles_n % tiles_m * BM;
        group = index / tiles_n / tiles_m;
        count_m = min(BM, rows - first_m), count_n = min(BN, columns - first_n);
    }
    __device__ __forceinline__ Tile(const Geometry& g, int columns, int BM, int BN, int64_t positions_per_split)
        : Tile(g, columns, BM, BN, blockIdx.x, blockIdx.y * positions_per_split, positions_per_split) {}

    // grad_output of the first row, at position 0; the input of the group's first channel.
    template <class T>
    __device__ __forceinline__ const T* rows(const T* grad_output, const Geometry& g, const Strides& stride) const {
        return grad_output + int64_t(group * g.k_per_group() + first_m) * stride.grad.c;
    }
    template <class T>
    __device__ __forceinline__ const T* planes(const T* input, const Geometry& g, const Strides& stride) const {
        return input + int64_t(group) * g.c_per_group() * stride.input.c;
    }
};

// What a column reads: how far from tap (0, 0) of channel 0, in elements and in rows and columns of the image. Or what a position
// reads for that tap, from the first element on.
struct alignas(16) Place {
    int64_t of_input;
    int h, w;
};

__device__ __forceinline__ bool is_inside(const Place& position, int tap_h, int tap_w, const Geometry& g) {
    return conv2d::is_inside(position.h, position.w, tap_h, tap_w, g.H, g.W);
}

// How much further another position's places are: parts/operands.py.
struct Move {
    int64_t of_grad, of_input, h, w;
};

// From a position to that of the next slice, and what the end of a row and the end of an image add.
struct Moves {
    Move slice, row, image;
};

// The positions of a slice of BL. The inputs of those past the end are outside of the image.
template <int BL> struct Positions {
    int64_t of_grad[BL];
    Place input[BL];

    __device__ __forceinline__ void locate(int64_t first, int64_t end, const Geometry& g, const Strides& stride) {
        const int i = threadIdx.x;
        if (i >= BL) return;
        const bool exists = first + i < end;
        const Position at(exists ? first + i : 0, g.P, g.Q);
        const int h = at.p * g.step_h - g.padding_h, w = at.q * g.step_w - g.padding_w;
        of_grad[i] = at.image * stride.grad.n + at.p * stride.grad.h + at.q * stride.grad.w;
        input[i] = {at.image * stride.input.n + h * stride.input.h + w * stride.input.w, exists ? h : FAR, w};
    }

    // The slice after `before`, of which `left` positions exist, without divisions.
    __device__ __forceinline__ void advance(const Positions& before, const Moves& moves, int64_t left, const Geometry& g) {
        const int i = threadIdx.x;
        if (i >= BL) return;
        int64_t grad = before.of_grad[i];
        Place place = before.input[i];
        const auto move = [&](const Move& by) {
            grad += by.of_grad, place.of_input += by.of_input, place.h += int(by.h), place.w += int(by.w);
        };
        move(moves.slice);
        if (place.w >= g.Q * g.step_w - g.padding_w) move(moves.row);
        if (place.h >= g.P * g.step_h - g.padding_h) move(moves.image);
        if (i >= left) place.h = FAR;
        of_grad[i] = grad, input[i] = place;
    }
};

template <int BN> struct Columns {
    Place column[BN];
    int64_t place[BN];  // in the weight, or in partial sums

    // Where channels lie side by side in memory (`inside`), columns are (r, s, c).
    __device__ __forceinline__ void locate(const Tile& tile, bool inside, bool partial, const Geometry& g, const Strides& stride) {
        const int c_per_group = g.c_per_group(), taps = g.R * g.S;
        for (int i = threadIdx.x; i < BN; i += THREADS) {
            column[i] = {0, FAR, FAR};
            if (i >= tile.count_n) continue;
            const int n = tile.first_n + i;
            const int c = inside ? n % c_per_group : n / taps, tap = inside ? n / c_per_group : n % taps;
            const int r = tap / g.S, s = tap % g.S, h = r * g.dilation_h, w = s * g.dilation_w;
            column[i] = {c * stride.input.c + h * stride.input.h + w * stride.input.w, h, w};
            place[i] = partial ? int64_t(c) * taps + tap : c * stride.weight.c + r * stride.weight.r + s * stride.weight.s;
        }
    }

    // The sum of row m, column n goes to the weight, or to the partial sums (splits, K, C / groups, R, S) where there are any.
    template <class T>
    __device__ __forceinline__ void store(Sum<T> sum, int m, int n, T* weight, Sum<T>* sums, const Tile& tile, const Geometry& g,
                                          const Strides& stride) const {
        if (m >= tile.count_m || n >= tile.count_n) return;
        const int64_t k = tile.group * g.k_per_group() + tile.first_m + m;
        if (sums == nullptr)
            weight[k * stride.weight.k + place[n]] = T(sum);
        else
            sums[(int64_t(blockIdx.y) * g.K + k) * (g.c_per_group() * g.R * g.S) + place[n]] = sum;
    }
};

}  // namespace conv2d_weight
