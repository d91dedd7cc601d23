// wgmma: the 4 warps of a warpgroup multiply 64 rows of A by 8 TILES columns of B, both in shared memory: sm_90a only.
//
// It covers 32 bytes along k: 16 elements of 16 bits, 8 tf32, 32 of one byte. D stays in registers: warp w of the group holds
// rows 16 w to 16 w + 15, in TILES tiles of 16 x 8, each in the layout of mma.sync (mma_sync.cuh). Tile is a struct whose x is
// float[4], int[4] or __half2[2]. T is the type of A and B; float means tf32, whose low 13 bits are ignored, and Fp8 names a
// type for each. Sums of fp8 keep few bits in the tensor cores: an instruction cuts its products and D off some 13 bits below
// the first bit of the largest of them.
//
// Operands are 128-byte swizzled (tma.cuh), by a descriptor each. K_MAJOR: rows of 128 bytes along k, one per row of A or
// column of B. Else, 16-bit elements only: rows of 64 elements along M or N, one per k. 8 rows are 1024 contiguous bytes; the
// next 64 rows of A or columns of B are `next` bytes on, which only the latter layout needs.
//
// tf32 of A may also come from registers: those of a 16 x 8 A of mma.sync, of each warp its 16 rows.
//
// A wgmma is asynchronous. wgmma_fence comes before the first one and after any other access to D or A's registers.
// wgmma_commit makes a group of those issued, and wgmma_wait<PENDING> returns when all but the youngest PENDING groups are
// done. Then their shared memory and A's registers may be written again. D may be read after wgmma_results, or else the
// compiler might read it before the wait.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "mbarrier.cuh"

struct E4M3 { unsigned char bits; };
struct E5M2 { unsigned char bits; };
template <class A, class B> struct Fp8 { unsigned char bits; };

__device__ __forceinline__ uint64_t wgmma_descriptor(unsigned shared_address, int next) {
    constexpr uint64_t EIGHT_ROWS = 1024 >> 4, SWIZZLE_128 = 1;
    return (shared_address & 0x3FFFF) >> 4 | uint64_t(next >> 4) << 16 | EIGHT_ROWS << 32 | SWIZZLE_128 << 62;
}

// Whether there is an instruction of 8 TILES columns. Number is a lane's in a sum's tile.
template <class Number, int TILES>
constexpr bool HAS_COLUMNS = TILES % 8 == 0 ? TILES <= 32 : (TILES == 12 || TILES == 20) && !std::is_same_v<Number, __half2>;

#ifdef __CUDACC__

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SM90A(...) asm volatile(__VA_ARGS__)
#else
#define SM90A(...) __trap()
#endif

// "%0, ..., %{COUNT - 1}" and the operands that they stand for.
#define WGMMA_TEN(T) "%" T "0, %" T "1, %" T "2, %" T "3, %" T "4, %" T "5, %" T "6, %" T "7, %" T "8, %" T "9, "
#define WGMMA_NAMES_16 WGMMA_TEN("") "%10, %11, %12, %13, %14, %15"
#define WGMMA_NAMES_32 WGMMA_TEN("") WGMMA_TEN("1") WGMMA_TEN("2") "%30, %31"
#define WGMMA_NAMES_48                                                  \
    WGMMA_TEN("") WGMMA_TEN("1") WGMMA_TEN("2") WGMMA_TEN("3") "%40, %41, %42, %43, %44, %45, %46, %47"
#define WGMMA_NAMES_64 \
    WGMMA_TEN("") WGMMA_TEN("1") WGMMA_TEN("2") WGMMA_TEN("3") WGMMA_TEN("4") WGMMA_TEN("5") "%60, %61, %62, %63"
#define WGMMA_NAMES_80                                                                                                  \
    WGMMA_TEN("") WGMMA_TEN("1") WGMMA_TEN("2") WGMMA_TEN("3") WGMMA_TEN("4") WGMMA_TEN("5") WGMMA_TEN("6")             \
    "%70, %71, %72, %73, %74, %75, %76, %77, %78, %79"
#define WGMMA_NAMES_96                                                                                                  \
    WGMMA_TEN("") WGMMA_TEN("1") WGMMA_TEN("2") WGMMA_TEN("3") WGMMA_TEN("4") WGMMA_TEN("5") WGMMA_TEN("6") WGMMA_TEN("7") \
    WGMMA_TEN("8") "%90, %91, %92, %93, %94, %95"
#define WGMMA_NAMES_128                                                                                                 \
    WGMMA_TEN("") WGMMA_TEN("1") WGMMA_TEN("2") WGMMA_TEN("3") WGMMA_TEN("4") WGMMA_TEN("5") WGMMA_TEN("6") WGMMA_TEN("7") \
    WGMMA_TEN("8") WGMMA_TEN("9") WGMMA_TEN("10") WGMMA_TEN("11") "%120, %121, %122, %123, %124, %125, %126, %127"
#define WGMMA_4(D, i) D(i), D(i + 1), D(i + 2), D(i + 3)
#define WGMMA_16(D, i) WGMMA_4(D, i), WGMMA_4(D, i + 4), WGMMA_4(D, i + 8), WGMMA_4(D, i + 12)
#define WGMMA_32(D, i) WGMMA_16(D, i), WGMMA_16(D, i + 16)
#define WGMMA_48(D, i) WGMMA_32(D, i), WGMMA_16(D, i + 32)
#define WGMMA_64(D, i) WGMMA_32(D, i), WGMMA_32(D, i + 32)
#define WGMMA_80(D, i) WGMMA_64(D, i), WGMMA_16(D, i + 64)
#define WGMMA_96(D, i) WGMMA_64(D, i), WGMMA_32(D, i + 64)
#define WGMMA_128(D, i) WGMMA_64(D, i), WGMMA_64(D, i + 64)
#define WGMMA_FLOAT(i) "+f"(sum[(i) / 4].x[(i) % 4])
#define WGMMA_INT(i) "+r"(sum[(i) / 4].x[(i) % 4])
#define WGMMA_HALVES(i) "+r"(reinterpret_cast<unsigned&>(sum[(i) / 2].x[(i) % 2]))

// The operands after them: the descriptors, and the flags whether A and B are contiguous along M and N.
#define WGMMA_AB_16 "%16, %17"
#define WGMMA_AB_32 "%32, %33"
#define WGMMA_AB_48 "%48, %49"
#define WGMMA_AB_64 "%64, %65"
#define WGMMA_AB_80 "%80, %81"
#define WGMMA_AB_96 "%96, %97"
#define WGMMA_AB_128 "%128, %129"
#define WGMMA_FRAGMENT_B_32 "{%32, %33, %34, %35}, %36"
#define WGMMA_FRAGMENT_B_48 "{%48, %49, %50, %51}, %52"
#define WGMMA_FRAGMENT_B_64 "{%64, %65, %66, %67}, %68"
#define WGMMA_FRAGMENT_B_80 "{%80, %81, %82, %83}, %84"
#define WGMMA_FRAGMENT_B_96 "{%96, %97, %98, %99}, %100"
#define WGMMA_FRAGMENT_B_128 "{%128, %129, %130, %131}, %132"
#define WGMMA_FRAGMENT_ADDS_32 "%37"
#define WGMMA_FRAGMENT_ADDS_48 "%53"
#define WGMMA_FRAGMENT_ADDS_64 "%69"
#define WGMMA_FRAGMENT_ADDS_80 "%85"
#define WGMMA_FRAGMENT_ADDS_96 "%101"
#define WGMMA_FRAGMENT_ADDS_128 "%133"
#define WGMMA_FLAGS_16 "%18, %19"
#define WGMMA_FLAGS_32 "%34, %35"
#define WGMMA_FLAGS_48 "%50, %51"
#define WGMMA_FLAGS_64 "%66, %67"
#define WGMMA_FLAGS_80 "%82, %83"
#define WGMMA_FLAGS_96 "%98, %99"
#define WGMMA_FLAGS_128 "%130, %131"
#define WGMMA_ADDS_32 "%34"
#define WGMMA_ADDS_48 "%50"
#define WGMMA_ADDS_64 "%66"
#define WGMMA_ADDS_80 "%82"
#define WGMMA_ADDS_96 "%98"
#define WGMMA_ADDS_128 "%130"

// N columns in COUNT registers of D. tf32 and fp8 take no flags, and integers neither these nor factors of 1 for A and B.
#define WGMMA_ADDS "{.reg .pred adds; setp.eq.u32 adds, 0, 0; wgmma.mma_async.sync.aligned.m64n"
#define WGMMA_16_BITS(N, COUNT, D, TYPES)                                                                                    \
    SM90A(WGMMA_ADDS N TYPES " {" WGMMA_NAMES_##COUNT "}, " WGMMA_AB_##COUNT ", adds, 1, 1, " WGMMA_FLAGS_##COUNT ";}"       \
          : WGMMA_##COUNT(D, 0)                                                                                              \
          : "l"(a), "l"(b), "n"(!A_K_MAJOR), "n"(!B_K_MAJOR))
#define WGMMA_32_BITS(N, COUNT, D, TYPES)                                                                                    \
    SM90A(WGMMA_ADDS N TYPES " {" WGMMA_NAMES_##COUNT "}, " WGMMA_AB_##COUNT ", adds, 1, 1;}"                                \
          : WGMMA_##COUNT(D, 0)                                                                                              \
          : "l"(a), "l"(b))
#define WGMMA_FRAGMENTS(N, COUNT, D, TYPES)                                                                                  \
    SM90A("{.reg .pred adds; setp.ne.u32 adds, " WGMMA_FRAGMENT_ADDS_##COUNT ", 0; wgmma.mma_async.sync.aligned.m64n" N TYPES \
          " {" WGMMA_NAMES_##COUNT "}, " WGMMA_FRAGMENT_B_##COUNT ", adds, 1, 1;}"                                           \
          : WGMMA_##COUNT(D, 0)                                                                                              \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS))
#define WGMMA_FP8(N, COUNT, D, TYPES)                                                                                        \
    SM90A("{.reg .pred adds; setp.ne.u32 adds, " WGMMA_ADDS_##COUNT ", 0; wgmma.mma_async.sync.aligned.m64n" N TYPES         \
          " {" WGMMA_NAMES_##COUNT "}, " WGMMA_AB_##COUNT ", adds, 1, 1;}"                                                   \
          : WGMMA_##COUNT(D, 0)                                                                                              \
          : "l"(a), "l"(b), "n"(ADDS))
#define WGMMA_8_BITS(N, COUNT, D, TYPES)                                                                                     \
    SM90A(WGMMA_ADDS N TYPES " {" WGMMA_NAMES_##COUNT "}, " WGMMA_AB_##COUNT ", adds;}"                                      \
          : WGMMA_##COUNT(D, 0)                                                                                              \
          : "l"(a), "l"(b))
// The instruction of so many columns: of sums of 32 bits a thread has half as many. Sums in half have no use for 96 and 160.
#define WGMMA_COLUMNS(BITS, D, TYPES, N, COUNT) if constexpr (8 * TILES == N) WGMMA_##BITS(#N, COUNT, D, TYPES)
#define WGMMA(BITS, D, TYPES)                      \
    WGMMA_COLUMNS(BITS, D, TYPES, 64, 32);         \
    else WGMMA_COLUMNS(BITS, D, TYPES, 96, 48);    \
    else WGMMA_COLUMNS(BITS, D, TYPES, 128, 64);   \
    else WGMMA_COLUMNS(BITS, D, TYPES, 160, 80);   \
    else WGMMA_COLUMNS(BITS, D, TYPES, 192, 96);   \
    else WGMMA_COLUMNS(BITS, D, TYPES, 256, 128)
#define WGMMA_OF_HALVES(TYPES)                                   \
    WGMMA_COLUMNS(16_BITS, WGMMA_HALVES, TYPES, 64, 16);         \
    else WGMMA_COLUMNS(16_BITS, WGMMA_HALVES, TYPES, 128, 32);   \
    else WGMMA_COLUMNS(16_BITS, WGMMA_HALVES, TYPES, 192, 48);   \
    else WGMMA_COLUMNS(16_BITS, WGMMA_HALVES, TYPES, 256, 64)

// sum += A B, with the 64 x 32 bytes of A and the 32 bytes x 8 TILES of B at the descriptors; unless it ADDS, sum = A B.
template <class T, bool A_K_MAJOR, bool B_K_MAJOR, bool ADDS = true, class Tile, int TILES>
__device__ __forceinline__ void wgmma(Tile (&sum)[TILES], uint64_t a, uint64_t b) {
    using Number = std::remove_extent_t<decltype(sum[0].x)>;
    static_assert(HAS_COLUMNS<Number, TILES>, "64, 96, 128, 160, 192 or 256 columns");
    constexpr bool FP8 = std::is_same_v<Number, float> && sizeof(T) == 1;
    static_assert(ADDS || FP8, "a sum of its own for each slice is for fp8");
    if constexpr (std::is_same_v<Number, int>) {
        static_assert(A_K_MAJOR && B_K_MAJOR && sizeof(T) == 1, "int sums are of bytes, which lie along k");
        if constexpr (std::is_signed_v<T>)
            WGMMA(8_BITS, WGMMA_INT, "k32.s32.s8.s8");
        else
            WGMMA(8_BITS, WGMMA_INT, "k32.s32.u8.u8");
    } else if constexpr (std::is_same_v<Number, __half2>) {
        static_assert(std::is_same_v<T, __half>, "only half accumulates in half");
        WGMMA_OF_HALVES("k16.f16.f16.f16");
    } else if constexpr (std::is_same_v<T, __half>) {
        WGMMA(16_BITS, WGMMA_FLOAT, "k16.f32.f16.f16");
    } else if constexpr (std::is_same_v<T, float>) {
        static_assert(A_K_MAJOR && B_K_MAJOR, "tf32 lies along k");
        WGMMA(32_BITS, WGMMA_FLOAT, "k8.f32.tf32.tf32");
    } else if constexpr (FP8) {
        static_assert(A_K_MAJOR && B_K_MAJOR, "fp8 lies along k");
        if constexpr (std::is_same_v<T, Fp8<E4M3, E4M3>>)
            WGMMA(FP8, WGMMA_FLOAT, "k32.f32.e4m3.e4m3");
        else if constexpr (std::is_same_v<T, Fp8<E4M3, E5M2>>)
            WGMMA(FP8, WGMMA_FLOAT, "k32.f32.e4m3.e5m2");
        else if constexpr (std::is_same_v<T, Fp8<E5M2, E4M3>>)
            WGMMA(FP8, WGMMA_FLOAT, "k32.f32.e5m2.e4m3");
        else
            WGMMA(FP8, WGMMA_FLOAT, "k32.f32.e5m2.e5m2");
    } else {
        static_assert(std::is_same_v<T, __nv_bfloat16>, "float sums are of half, bfloat16, tf32 or fp8");
        WGMMA(16_BITS, WGMMA_FLOAT, "k16.f32.bf16.bf16");
    }
}

// The same of tf32, with A in registers.
template <class T, bool ADDS = true, class Tile, int TILES>
__device__ __forceinline__ void wgmma(Tile (&sum)[TILES], const unsigned (&a)[4], uint64_t b) {
    static_assert(HAS_COLUMNS<float, TILES>, "64, 96, 128, 160, 192 or 256 columns");
    static_assert(std::is_same_v<T, float>, "operands of 16 bits need no registers: they may lie across k in shared memory");
    WGMMA(FRAGMENTS, WGMMA_FLOAT, "k8.f32.tf32.tf32");
}

__device__ __forceinline__ void wgmma_fence() { SM90A("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { SM90A("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void wgmma_wait() {
    SM90A("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

template <class Tile, int TILES> __device__ __forceinline__ void wgmma_results(Tile (&sum)[TILES]) {
#pragma unroll
    for (int n = 0; n < TILES; ++n) {
        using Number = std::remove_extent_t<decltype(sum[n].x)>;
        if constexpr (std::is_same_v<Number, float>)
            asm volatile("" : WGMMA_4(WGMMA_FLOAT, 4 * n)::"memory");
        else if constexpr (std::is_same_v<Number, int>)
            asm volatile("" : WGMMA_4(WGMMA_INT, 4 * n)::"memory");
        else
            asm volatile("" : WGMMA_HALVES(2 * n), WGMMA_HALVES(2 * n + 1)::"memory");
    }
}

// Waits for the other threads of the warpgroup.
__device__ __forceinline__ void warpgroup_barrier() {
    asm volatile("bar.sync %0, 128;" ::"r"(1 + threadIdx.x / 128) : "memory");  // barrier 0 is the block's
}

// All threads of a warpgroup release registers, or wait until others have: COUNT each from here on, a multiple of 8.
template <int COUNT> __device__ __forceinline__ void give_up_registers() {
    SM90A("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT> __device__ __forceinline__ void take_registers() {
    SM90A("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

#undef SM90A

#else
#include "../simt/wgmma.h"
#endif
