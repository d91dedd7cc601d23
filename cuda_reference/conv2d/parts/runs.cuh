// Vertical runs of outputs, one per thread: shared by `depthwise`, `depthwise_channels` and `grouped`.
//
// A run of 7 needs 6 STEP + R rows of inputs, not 7 R, each in a register that serves every output that uses it. Runs go
// down, so that neighbouring lanes stay neighbours in memory. Of 7 or 14, for the planes of most networks are 7 * 2^n high.
#pragma once
#include "residual.cuh"

namespace conv2d {

// Rows of inputs that a run reads for a column of TAPS adjacent taps.
template <int RUN, int TAPS, int STEP> constexpr int ROWS = (RUN - 1) * STEP + TAPS;

// index % size, and index / size left in it; by 32-bit division where possible, which is several times as fast.
__device__ __forceinline__ int take(int64_t& index, int size) {
    const bool is_short = index >> 32 == 0;
    const int64_t rest = is_short ? unsigned(index) / unsigned(size) : index / size;
    const int digit = int(index - rest * size);
    index = rest;
    return digit;
}

template <int BYTES> struct PieceOf { using type = uint4; };
template <> struct PieceOf<8> { using type = uint2; };
template <> struct PieceOf<4> { using type = unsigned; };

// WIDTH contiguous, aligned elements, as accesses of 128 bits, or one of 64 or 32.
template <int WIDTH, class T> struct Together {
    static constexpr int BYTES = WIDTH * sizeof(T) < 16 ? WIDTH * sizeof(T) : 16, COUNT = WIDTH * sizeof(T) / BYTES;
    using Piece = typename PieceOf<BYTES>::type;
    static_assert(COUNT * sizeof(Piece) == WIDTH * sizeof(T), "pieces of 128 bits, or one of 64 or 32");

    Piece pieces[COUNT];

    __device__ __forceinline__ void load(const T* from) {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) pieces[i] = reinterpret_cast<const Piece*>(from)[i];
    }

    __device__ __forceinline__ void store(T* to) const {
#pragma unroll
        for (int i = 0; i < COUNT; ++i) reinterpret_cast<Piece*>(to)[i] = pieces[i];
    }
};

template <int WIDTH, class From, class To> __device__ __forceinline__ void load_together(To (&to)[WIDTH], const From* from) {
    From held[WIDTH];
    if constexpr (WIDTH == 1) {
        held[0] = *from;
    } else {
        Together<WIDTH, From> bits;
        bits.load(from);
        std::memcpy(held, &bits, sizeof bits);
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = To(held[i]);
}

template <int WIDTH, class T> __device__ __forceinline__ void store_together(T* to, const Sum<T> (&from)[WIDTH]) {
    T held[WIDTH];
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) held[i] = T(from[i]);
    if constexpr (WIDTH == 1) {
        *to = held[0];
    } else {
        Together<WIDTH, T> bits;
        std::memcpy(&bits, held, sizeof bits);
        bits.store(to);
    }
}

template <int COUNT> using RowBits = std::conditional_t<(COUNT > 32), uint64_t, unsigned>;

// Which of COUNT rows, each `apart` from the one before, lie in the image, a bit each, from row h on. Computed once, not per
// column.
template <int COUNT> __device__ __forceinline__ RowBits<COUNT> rows_inside(int h, int apart, const Geometry& g) {
    static_assert(COUNT <= 64, "a bit each");
    RowBits<COUNT> inside = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) inside |= RowBits<COUNT>(unsigned(h + i * apart) < unsigned(g.H)) << i;
    return inside;
}

// WIDTH channels of COUNT inputs below each other, `apart` bytes; those that are not `inside` are 0. Where `apart` is an int, an
// address is one instruction.
template <int COUNT, int WIDTH, class T, class Apart>
__device__ __forceinline__ void load_column(Sum<T> (&column)[COUNT][WIDTH], const T* at, Apart apart, RowBits<COUNT> inside) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) {
#pragma unroll
        for (int c = 0; c < WIDTH; ++c) column[i][c] = Sum<T>(0);
        const char* const from = reinterpret_cast<const char*>(at) + int64_t(i) * apart;
        if (inside >> i & 1) load_together(column[i], reinterpret_cast<const T*>(from));
    }
}

// sum += a column of taps times its inputs, from `at` in row h on; `tap` steps from one tap to the next.
template <int TAPS, int STEP, int RUN, int WIDTH, class T, class Tap>
__device__ __forceinline__ void multiply_column(Sum<T> (&sum)[RUN][WIDTH], const T* at, int h, bool inside, const Tap* tap,
                                                int64_t tap_step, const Geometry& g, const Strides& stride) {
    constexpr int COUNT = TAPS > 0 ? ROWS<RUN, TAPS, STEP> : RUN;
    Sum<T> column[COUNT][WIDTH], of_tap[WIDTH];
    const auto multiply = [&](int first) {
        load_together(of_tap, tap);
        tap += tap_step;
#pragma unroll
        for (int j = 0; j < RUN; ++j)
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) sum[j][i] += of_tap[i] * column[first + j * (TAPS > 0 ? STEP : 1)][i];
    };
    if constexpr (TAPS > 0) {
        load_column(column, at, int(stride.input.h * sizeof(T)), inside ? rows_inside<COUNT>(h, 1, g) : 0);
#pragma unroll
        for (int r = 0; r < TAPS; ++r) multiply(r);
    } else {
        const int64_t next_tap = g.dilation_h * stride.input.h, next_output = g.step_h * stride.input.h * sizeof(T);
        for (int r = 0; r < g.R; ++r, h += g.dilation_h, at += next_tap) {
            load_column(column, at, next_output, inside ? rows_inside<COUNT>(h, g.step_h, g) : 0);
            multiply(0);
        }
    }
}

// Adds the residual to the sums of a run whose first output is given, and activates them. If WIDTH is more than 1 the residual's
// channels lie as those that load_together reads.
template <int RUN, int WIDTH, class T>
__device__ __forceinline__ void finish_run(Sum<T> (&sum)[RUN][WIDTH], const Follows<T>& follows, int image, int k, int p, int q,
                                           const Geometry& g) {
    if (follows.residual != nullptr) {
        const T* const at = follows.at(image, k, p, q);
#pragma unroll
        for (int j = 0; j < RUN; ++j) {
            Sum<T> added[WIDTH] = {};
            if (p + j < g.P) load_together(added, at + j * follows.stride.h);
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) sum[j][i] += added[i];
        }
    }
    follows.activate([&](const auto& change) {
#pragma unroll
        for (int j = 0; j < RUN; ++j)
#pragma unroll
            for (int i = 0; i < WIDTH; ++i) change(sum[j][i], j, i);
    });
}

// Stores the sums of WIDTH channels of a run whose first output is in row p.
template <int RUN, int WIDTH, class T>
__device__ __forceinline__ void store_run(const Sum<T> (&sum)[RUN][WIDTH], T* at, int p, const Geometry& g,
                                          const Strides& stride) {
#pragma unroll
    for (int j = 0; j < RUN; ++j)
        if (p + j < g.P) store_together(at + j * stride.out.h, sum[j]);
}

}  // namespace conv2d
