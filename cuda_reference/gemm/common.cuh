// What every rung of the FP32 GEMM ladder shares: strides, the map from blocks to tiles, and the epilogue.
//
// Glossary: BM x BN x BK is the block tile, TM x TN the thread tile. A is (M, K), B (K, N), C and out (M, N).
#pragma once
#include "../common/index.cuh"

namespace gemm {

// In elements. Any strides: a transposed matrix is only another pair, 0 repeats one element. 64-bit: offsets may pass 2^31.
struct Strides {
    int64_t am, ak, bk, bn, cm, cn, om, on;
};

// out = alpha * sum + beta * C at one element. c is null where beta is 0, so that whatever C holds (NaN too) is never read.
__device__ __forceinline__ void store_element(
    float sum, const float* c, float* out, int row, int col, float alpha, float beta, const Strides& stride) {
    float result = alpha * sum;
    if (c != nullptr) result += beta * c[row * stride.cm + col * stride.cn];
    out[row * stride.om + col * stride.on] = result;
}

}  // namespace gemm
