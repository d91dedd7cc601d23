// What all rungs of the GEMM ladder share: names, and the strides that they take.
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

}  // namespace gemm
