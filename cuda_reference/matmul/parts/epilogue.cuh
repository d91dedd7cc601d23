// The epilogue of every matrix product: out = activation(alpha * sum + beta * C + bias).
//
// In fp32 of fp16 and fp32 sums, in fp64 of fp64 ones, modulo 2^32 of int32 ones; rounded once, into out's type.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "../../common/index.cuh"
#include "../../common/structs.cuh"
#include "activation.cuh"

namespace matmul {

// Bytes count where they pack elements.
struct Strides {
    MatricesStrides a, b, c, out;
    VectorStrides bias;
};

// What alpha, beta and the addends of a Sum are multiplied and added in.
template <class Sum>
using Scalar = std::conditional_t<std::is_same<Sum, __half>::value, float,
                                  std::conditional_t<std::is_same<Sum, int>::value, unsigned, Sum>>;

__device__ __forceinline__ void convert(float value, float& out) { out = value; }
__device__ __forceinline__ void convert(float value, __half& out) { out = __float2half(value); }
__device__ __forceinline__ void convert(float value, __nv_bfloat16& out) { out = __float2bfloat16(value); }
__device__ __forceinline__ void convert(double value, double& out) { out = value; }
__device__ __forceinline__ void convert(unsigned value, int& out) { out = int(value); }

__device__ __forceinline__ float widen(float value) { return value; }
__device__ __forceinline__ float widen(__half value) { return __half2float(value); }
__device__ __forceinline__ float widen(__nv_bfloat16 value) { return __bfloat162float(value); }
__device__ __forceinline__ double widen(double value) { return value; }
__device__ __forceinline__ unsigned widen(int value) { return unsigned(value); }
__device__ __forceinline__ unsigned widen(unsigned value) { return value; }

// The epilogue of one matrix of the batch.
template <class Sum, class Out> struct Epilogue {
    const Out* c;     // null where beta is 0: C is then not read
    const Out* bias;  // or null
    Out* out;
    Scalar<Sum> alpha, beta;
    Activation activation;
    Strides stride;

    __device__ __forceinline__ Epilogue(const Out* c, const Out* bias, Out* out, Scalar<Sum> alpha, Scalar<Sum> beta,
                                        int activation, const Strides& stride, int batch)
        : c(c == nullptr ? c : c + batch * stride.c.batch),
          bias(bias),
          out(out + batch * stride.out.batch),
          alpha(alpha),
          beta(beta),
          activation(Activation(activation)),
          stride(stride) {}

    // Whether every eighth result of a row of 16-bit ones is a multiple of 16 bytes, and those after it are its neighbours.
    __device__ __forceinline__ bool rows_are_words() const {
        return stride.out.col == 1 && reinterpret_cast<uintptr_t>(out) % 16 == 0 && stride.out.row % 8 == 0;
    }

    __device__ __forceinline__ Scalar<Sum> scaled(Sum sum) const { return alpha * widen(sum); }

    __device__ __forceinline__ Scalar<Sum> with_addends(Scalar<Sum> result, int row, int col) const {
        if (c != nullptr) result += beta * widen(c[row * stride.c.row + col * stride.c.col]);
        if (bias != nullptr) result += widen(bias[col * stride.bias.step]);
        return result;
    }

    // What follows scaled(), step by step for all of a thread's sums, so that the code has each branch once, not once a sum.
    // for_all(change) calls change(result, row, col) for each; row and col count from (first_row, first_col) of the result. A
    // change(result) will do for one that needs no place: its code is long.
    // C and bias are added apart: a load that waits for the edge alone is predicated, not branched around, so all go out together.
    template <class ForAll>
    __device__ __forceinline__ void finish(const ForAll& for_all, int first_row, int first_col, int M, int N) const {
        add_c(for_all, first_row, first_col, M, N);
        if (bias != nullptr)
            for_all([&](Scalar<Sum>& result, int, int col) {
                if (first_col + col < N) result += widen(bias[(first_col + col) * stride.bias.step]);
            });
        activate_all(for_all);
    }

    // The first step of `finish`.
    template <class ForAll>
    __device__ __forceinline__ void add_c(const ForAll& for_all, int first_row, int first_col, int M, int N) const {
        if (c != nullptr)
            for_all([&](Scalar<Sum>& result, int row, int col) {
                const int at_row = first_row + row, at_col = first_col + col;
                if (at_row < M && at_col < N) result += beta * widen(c[at_row * stride.c.row + at_col * stride.c.col]);
            });
    }

    // The last step of `finish`.
    template <class ForAll> __device__ __forceinline__ void activate_all(const ForAll& for_all) const {
        using Number = Scalar<Sum>;
        if (activation == RELU) for_all([&](Number& result, int, int) { result = activate<Out>(result, RELU); });
        activate_smoothly(for_all);
    }

    // The same for activations with exponentials only.
    template <class ForAll> __device__ __forceinline__ void activate_smoothly(const ForAll& for_all) const {
        using Number = Scalar<Sum>;
        if (activation == GELU) for_all([&](Number& result, auto...) { result = activate<Out>(result, GELU); });
        if (activation == SILU) for_all([&](Number& result, auto...) { result = activate<Out>(result, SILU); });
    }

    __device__ __forceinline__ void store(Sum sum, int row, int col) const {
        convert(activate<Out>(with_addends(scaled(sum), row, col), activation),
                out[row * stride.out.row + col * stride.out.col]);
    }
};

// SCALED: nothing follows alpha, and the compiler knows it. The code of addends and activations takes time even where it does not
// run: 64 sums of a thread have 10,000 instructions of it, and what runs is then far apart in memory, read in more pieces.
template <class Sum, bool SCALED, class Out>
__device__ __forceinline__ Epilogue<Sum, Out> epilogue_of(const Out* c, const Out* bias, Out* out, Scalar<Sum> alpha,
                                                          Scalar<Sum> beta, int activation, const Strides& stride, int batch) {
    return {SCALED ? nullptr : c, SCALED ? nullptr : bias, out, alpha, beta, SCALED ? NONE : activation, stride, batch};
}

}  // namespace matmul
