// Shared by all rungs of the GEMM ladder: strides and the epilogue. T is float, or double in `naive` and `tiled`.
//
// Glossary: BM x BN x BK is the block tile, TM x TN the thread tile. A is (M, K), B (K, N), C and out (M, N).
#pragma once
#include "../../common/index.cuh"
#include "../../common/structs.cuh"

namespace gemm {

// Any strides: a transposed matrix has them exchanged. 64-bit: offsets may pass 2^31.
struct Strides {
    MatrixStrides a, b, c, out;
};

// out = alpha * sum + beta * C at one element. c is null where beta is 0, so that C (NaN too) is never read.
template <class T>
__device__ __forceinline__ void store_element(
    T sum, const T* c, T* out, int row, int col, T alpha, T beta, const Strides& stride) {
    T result = alpha * sum;
    if (c != nullptr) result += beta * c[row * stride.c.row + col * stride.c.col];
    out[row * stride.out.row + col * stride.out.col] = result;
}

}  // namespace gemm
