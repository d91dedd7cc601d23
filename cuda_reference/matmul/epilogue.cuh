// What becomes of a sum: out = activation(alpha * sum + beta * C + bias), and out's way into memory.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "../common/vector.cuh"

namespace matmul {

// In elements; ab, bb, cb and ob step from one matrix of the batch to the next, 0 shares it; n steps in bias.
struct Strides {
    int64_t ab, am, ak, bb, bk, bn, cb, cm, cn, n, ob, om, on;
};

enum Activation { NONE, RELU, GELU, SILU };  // as numbered in Python

// Scale, the type of alpha, beta and of the arithmetic, is float, or int, which wraps.
template <class Out, class Scale> struct Epilogue {
    const Out *c, *bias;  // null where there is none, and c where beta is 0: whatever it holds is never read
    Out* out;
    int M, N;
    Scale alpha, beta;
    int activation;
    Strides stride;

    __device__ __forceinline__ Epilogue(const Out* c, const Out* bias, Out* out, int M, int N, Scale alpha, Scale beta,
                                        int activation, const Strides& stride, int batch)
        : c(c == nullptr ? c : c + batch * stride.cb), bias(bias), out(out + batch * stride.ob), M(M), N(N), alpha(alpha),
          beta(beta), activation(activation), stride(stride) {}

    __device__ __forceinline__ Out operator()(Scale sum, int row, int col) const {
        using Number = std::conditional_t<std::is_same_v<Scale, int>, unsigned, float>;
        if (row >= M || col >= N) return Out(Scale(0));
        Number result = Number(alpha) * Number(sum);
        if (c != nullptr) result += Number(beta) * Number(Scale(c[row * stride.cm + col * stride.cn]));
        if (bias != nullptr) result += Number(Scale(bias[col * stride.n]));
        return Out(activate(Scale(result)));
    }

    __device__ __forceinline__ Scale activate(Scale x) const {
        if (activation == RELU) return x < 0 ? Scale(0) : x;  // NaN stays
        if constexpr (std::is_same_v<Scale, float>) {
            if (activation == GELU) return 0.5f * x * (1.0f + erff(x * 0.70710678f));
            if (activation == SILU) return x / (1.0f + expf(-x));
        }
        return x;
    }

    // COUNT neighbours in a row, by one store of up to 128 bits where out allows.
    template <int COUNT> __device__ __forceinline__ void store(const Out (&run)[COUNT], int row, int col) const {
        using Word = std::conditional_t<COUNT * sizeof(Out) == 16, uint4, uint2>;
        static_assert(sizeof run == sizeof(Word), "a run is 8 or 16 bytes");
        if (row >= M) return;
        Out* const to = out + row * stride.om + col * stride.on;
        if (stride.on == 1 && col + COUNT <= N && reinterpret_cast<uintptr_t>(to) % sizeof(Word) == 0) {
            *reinterpret_cast<Word*>(to) = *reinterpret_cast<const Word*>(run);
            return;
        }
#pragma unroll
        for (int i = 0; i < COUNT; ++i)
            if (col + i < N) to[i * stride.on] = run[i];
    }
};

}  // namespace matmul
