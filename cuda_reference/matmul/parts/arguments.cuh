// The arguments of the kernels that multiply_tiles computes (persistent.cuh), but for those of their walks.
#pragma once
#include "../../common/tma.cuh"
#include "epilogue.cuh"
#include "scales.cuh"

namespace matmul {

template <class Sum, class Out> struct Arguments {
    const CUtensorMap &a_map, &b_map, &out_map, *c_map;  // c_map: null unless TMA brings C (addend.cuh), which c then is null for
    const Out *__restrict__ c, *__restrict__ bias;
    Out* __restrict__ out;
    int M, N, K;
    Scalar<Sum> alpha, beta;
    int activation;
    const Strides& stride;
    int batches, group;
    const float *__restrict__ scale_a, *__restrict__ scale_b;
    const ScaleStrides& scale_stride;

    // That of one matrix of the batch; alpha may have scales in it. Of: the type of the sums that it gets.
    template <class Of, bool SCALED> __device__ __forceinline__ Epilogue<Of, Out> epilogue(Scalar<Of> alpha, int batch) const {
        return epilogue_of<Of, SCALED>(c, bias, out, alpha, beta, activation, stride, batch);
    }
};

}  // namespace matmul
