// mma.sync: a warp adds the product of a 16 x 32-byte A and an 8-column B to a 16 x 8 D, all in registers: sm_80 and later.
//
// 32 bytes along k are 16 elements of 16 bits, 8 tf32 or 32 bytes. With g = lane / 4, t = lane % 4, words are 4 bytes of it:
//   A, word i    row g + 8 (i % 2), bytes 16 (i / 2) + 4 t to + 3: matrix i of an ldmatrix of A's quarters, 8 rows of 16 bytes
//   B, word i    column g, bytes 16 i + 4 t to + 3
//   D, number i  row g + 8 (i / 2), column 2 t + i % 2
// fp64 has twice the bytes, 8 elements: number i of A has k = t + 4 (i / 2) in the row of word i, number i of B has t + 4 i.
// All lanes must call it. Products are exact, sums have D's type, and int wraps. The low 13 bits of a tf32 operand are ignored:
// call round_to_tf32 first. T is the type of A and B; float means tf32.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

template <class T> constexpr int MMA_BYTES = sizeof(T) == 8 ? 64 : 32;  // along k

#ifdef __CUDACC__

#if __CUDA_ARCH__ >= 800
#define MMA_SYNC(TYPES, REGISTER)                                                                                          \
    asm volatile("mma.sync.aligned." TYPES " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"            \
                 : "+" REGISTER(sum[0]), "+" REGISTER(sum[1]), "+" REGISTER(sum[2]), "+" REGISTER(sum[3])                 \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1))
#else
#define MMA_SYNC(TYPES, REGISTER) __trap()
#endif

template <class T>
__device__ __forceinline__ void mma_sync(float (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    static_assert(std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16> || std::is_same_v<T, float>);
    if constexpr (std::is_same_v<T, __half>)
        MMA_SYNC("m16n8k16.row.col.f32.f16.f16.f32", "f");
    else if constexpr (std::is_same_v<T, __nv_bfloat16>)
        MMA_SYNC("m16n8k16.row.col.f32.bf16.bf16.f32", "f");
    else
        MMA_SYNC("m16n8k8.row.col.f32.tf32.tf32.f32", "f");
}

template <class T>
__device__ __forceinline__ void mma_sync(int (&sum)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    static_assert(std::is_same_v<T, signed char> || std::is_same_v<T, unsigned char>);
    if constexpr (std::is_same_v<T, signed char>)
        MMA_SYNC("m16n8k32.row.col.s32.s8.s8.s32", "r");
    else
        MMA_SYNC("m16n8k32.row.col.s32.u8.u8.s32", "r");
}

// Numbers 2 i and 2 i + 1 of D in sum[i].
template <class T>
__device__ __forceinline__ void mma_sync(__half2 (&sum)[2], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    static_assert(std::is_same_v<T, __half>, "only half accumulates in half");
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};"
                 : "+r"(reinterpret_cast<unsigned&>(sum[0])), "+r"(reinterpret_cast<unsigned&>(sum[1]))
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
#else
    __trap();
#endif
}

// Before Hopper four instructions, which reach the peak there and half of it on Hopper.
template <class T> __device__ __forceinline__ void mma_sync(double (&sum)[4], const double (&a)[4], double b0, double b1) {
    static_assert(std::is_same_v<T, double>, "only double accumulates in double");
#if __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
                 "{%0, %1, %2, %3};"
                 : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#elif __CUDA_ARCH__ >= 800
#pragma unroll
    for (int i = 0; i < 4; ++i)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(sum[i % 2 * 2]), "+d"(sum[i % 2 * 2 + 1])
                     : "d"(a[i]), "d"(i / 2 ? b1 : b0));
#else
    __trap();
#endif
}

// To nearest. Infinity and NaN are kept. From Hopper on ties go to even, in one instruction. Before they go away from zero, in
// four: the addition makes NaN quiet, since a payload in only the 13 ignored bits would otherwise turn into an infinity.
__device__ __forceinline__ unsigned round_to_tf32(unsigned value) {
#if __CUDA_ARCH__ >= 900
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(value) : "f"(__uint_as_float(value)));
#elif __CUDA_ARCH__ >= 800
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(value) : "f"(__uint_as_float(value) + 0.0f));
#endif
    return value;
}

#undef MMA_SYNC

#else
#include "../simt/mma_sync.h"
#endif
