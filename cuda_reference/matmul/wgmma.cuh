// Matrix product on Hopper, wgmma: a warpgroup multiplies slices of both operands where they lie, in shared memory.
//
// `pipelined`'s warps load fragments into registers (ldmatrix) before they multiply them (mma.sync), at some 60 % of the peak.
// wgmma does without: the 4 warps of a warpgroup multiply 64 rows of A by up to 256 columns of B, which the tensor cores read from
// shared memory themselves. The threads only bring slices there, one at a time: copy, wait, multiply, wait.
//
//   - Swizzle: 64 of k are 128 bytes a row, 8 chunks of 16. Tensor cores read the same chunk of 8 rows at a time. At the same
//     place in every row, these would lie in the same 4 of 32 banks and take 8 reads instead of one. So chunk c of row r is
//     stored at place c XOR r % 8.
//   - Async proxy: wgmma reads shared memory by another path than loads and stores. It sees a thread's writes after that
//     thread's fence.proxy.async, and all threads' writes after a barrier that follows.
//   - A descriptor says where a slice is: its address, the swizzle, 1024 bytes to the next 8 rows. 16 of k are 32 bytes.
//
// Both operands lie along k, in rows of whole chunks of 16 bytes; the launcher packs others first.
// BM x BN is the tile of a block, BK the depth of a slice.
// Mirrors tritonkernels/matmul/wgmma.py.
#pragma once
#include "../common/cp_async.cuh"
#include "../common/index.cuh"
#include "../common/shared.cuh"
#include "../common/tma.cuh"
#include "../common/wgmma.cuh"
#include "parts/plain_result.cuh"

namespace matmul {

constexpr int BK = 64;  // elements of k in a slice: 128 bytes, the width of the swizzle

// Starts the products of a slice, given descriptors: 64 rows of A for each of BLOCKS, in steps of 32 bytes along k.
template <class T, int BLOCKS, int TILES>
__device__ __forceinline__ void multiply(Sums (&sum)[BLOCKS][TILES], uint64_t a, uint64_t b) {
    wgmma_fence();
#pragma unroll
    for (int step = 0; step < 4; ++step)
#pragma unroll
        for (int m = 0; m < BLOCKS; ++m)
            ::wgmma<T, true, true>(sum[m], a + (m * 64 * 128 + step * 32) / 16, b + step * 32 / 16);
    wgmma_commit();
}

// Copies ROWS rows of a slice. The operand has `rows` by `depth` elements left; the others become zeros.
template <int ROWS, class T>
__device__ __forceinline__ void copy_slice(T* slice, const T* from, int64_t pitch, int rows, int depth) {
    constexpr int CHUNK = 16 / sizeof(T);
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * 8; i += 128) {  // 8 threads a row: its 128 bytes are one line of L2
        const int row = i / 8, chunk = i % 8, inside = row < rows ? max(0, min(depth - chunk * CHUNK, CHUNK)) : 0;
        T* const to = slice + row * BK + (chunk ^ row % 8) * CHUNK;
        cp_async<16>(to, from + row * pitch + chunk * CHUNK, inside * int(sizeof(T)));
    }
}

template <class T, class Out, int BM, int BN>
__global__ void __launch_bounds__(128)
wgmma(const T* __restrict__ a, const T* __restrict__ b, int64_t a_pitch, int64_t b_pitch,
      const Out* c, Out* out, int M, int N, int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
    static_assert(BM % 64 == 0 && BM * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    T *const a_slices = dynamic_shared<T>(), *const b_slices = a_slices + BM * BK;
    const int tiles_m = ceil_div(M, BM), row = blockIdx.x % tiles_m * BM, col = blockIdx.x / tiles_m * BN;
    const int slices = ceil_div(K, BK);

    const uint64_t of_a = wgmma_descriptor(shared_address(a_slices), 0);
    const uint64_t of_b = wgmma_descriptor(shared_address(b_slices), 0);
    const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
    Sums sum[BM / 64][BN / 8] = {};
    for (int n = 0; n < slices; ++n) {
        copy_slice<BM>(a_slices, a + row * a_pitch + n * BK, a_pitch, M - row, K - n * BK);
        copy_slice<BN>(b_slices, b + col * b_pitch + n * BK, b_pitch, N - col, K - n * BK);
        cp_async_commit();
        cp_async_wait<0>();
        tma_store_fence();  // fence.proxy.async: wgmma sees what this thread has written
        __syncthreads();    // and what the others have
        multiply<T>(sum, of_a, of_b);
        wgmma_wait<0>();  // the warpgroup's products end together: the slice may be overwritten, without another barrier
    }

#pragma unroll
    for (int m = 0; m < BM / 64; ++m) result.store(sum[m], row + m * 64, col);
}

}  // namespace matmul
