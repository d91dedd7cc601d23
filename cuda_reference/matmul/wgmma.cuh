// Matrix product on Hopper, wgmma: a warpgroup multiplies slices of both operands where they lie, in shared memory.
//
// In `pipelined` each warp loads fragments into registers (ldmatrix) before it multiplies them (mma.sync), and reaches some 60 % of
// the tensor cores. wgmma has neither: the 4 warps of a warpgroup together multiply 64 rows of A by up to 256 columns of B, which
// the tensor cores read from shared memory themselves, while the threads may do something else. The threads bring slices there:
//
//   - The 128-byte swizzle. A slice has 64 of k, so a row is 128 bytes, 8 chunks of 16. Tensor cores read one chunk of 8 rows at
//     a time. If all rows had it in the same place, those would be the same 4 of 32 banks, and the read would take 8 times as
//     long. So chunk c of row r is stored as chunk c XOR r % 8.
//   - The async proxy. wgmma reads shared memory by another path than loads and stores do. A thread's writes are visible there
//     after fence.proxy.async, and other threads' after theirs and a barrier.
//   - A descriptor names an operand's slice: address, swizzle, and 1024 bytes from 8 rows to the next 8. 16 of k are 32 bytes on.
//
// One slice at a time: copy, wait, multiply, wait. Only other blocks of the SM work meanwhile, three of 32 KB and 168 registers.
// Both operands lie along k, in rows of whole chunks; the launcher packs others first.
//
// Glossary: BM x BN is the tile of a block, BK the depth of a slice.
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

// Starts the products of a slice, of descriptors a and b: 64 rows of A for each of BLOCKS, in steps of 32 bytes along k.
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

// Copies ROWS rows of a slice, of which `rows` by `depth` elements are in the operand, with zeros for the others.
template <int ROWS, class T>
__device__ __forceinline__ void copy_slice(T* slice, const T* from, int64_t pitch, int rows, int depth) {
    constexpr int CHUNK = 16 / sizeof(T);
#pragma unroll
    for (int i = threadIdx.x; i < ROWS * 8; i += 128) {  // 8 threads a row: its 128 bytes are one line of L2
        const int row = i / 8, chunk = i % 8, left = row < rows ? min(depth - chunk * CHUNK, CHUNK) : 0;
        const T* const chunk_of = from + row * pitch + chunk * CHUNK;
        cp_async<16>(slice + row * BK + (chunk ^ row % 8) * CHUNK, chunk_of, max(left, 0) * int(sizeof(T)));
    }
}

template <class T, class Out, int BM, int BN>
__global__ void __launch_bounds__(128)
wgmma(const T* __restrict__ a, const T* __restrict__ b, int64_t a_pitch, int64_t b_pitch, const Out* c, Out* out, int M, int N,
      int K, float alpha, float beta, MatrixStrides of_c, MatrixStrides of_out) {
    static_assert(BM % 64 == 0 && BM * BN <= 128 * 128, "a wgmma has 64 rows, a thread registers for 128 sums");
    T *const a_slice = dynamic_shared<T>(), *const b_slice = a_slice + BM * BK;
    const int tiles_m = ceil_div(M, BM), row = blockIdx.x % tiles_m * BM, col = blockIdx.x / tiles_m * BN;

    const uint64_t of_a = wgmma_descriptor(shared_address(a_slice), 0);
    const uint64_t of_b = wgmma_descriptor(shared_address(b_slice), 0);
    Sums sum[BM / 64][BN / 8] = {};
    for (int k = 0; k < K; k += BK) {
        copy_slice<BM>(a_slice, a + row * a_pitch + k, a_pitch, M - row, K - k);
        copy_slice<BN>(b_slice, b + col * b_pitch + k, b_pitch, N - col, K - k);
        cp_async_commit();
        cp_async_wait<0>();
        tma_store_fence();  // fence.proxy.async: wgmma sees what this thread has written
        __syncthreads();    // and what the others have
        multiply<T>(sum, of_a, of_b);
        wgmma_wait<0>();  // the warpgroup's products end together: the slice may be overwritten, without another barrier
    }

    const PlainResult<Out> result{c, out, M, N, alpha, beta, of_c, of_out};
#pragma unroll
    for (int m = 0; m < BM / 64; ++m) result.store(sum[m], row + m * 64, col);
}

}  // namespace matmul
