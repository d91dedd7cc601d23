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
#include "wgmma_text.cuh"

struct E4M3 { unsigned char bits; };
struct E5M2 { unsigned char bits; };
template <class A, class B> struct Fp8 { unsigned char bits; };

__device__ __forceinline__ uint64_t wgmma_descriptor(unsigned shared_address, int next) {
    constexpr uint64_t EIGHT_ROWS = 1024 >> 4, SWIZZLE_128 = 1;
    return (shared_address & 0x3FFFF) >> 4 | uint64_t(next >> 4) << 16 | EIGHT_ROWS << 32 | SWIZZLE_128 << 62;
}

// Whether there is an instruction of 8 TILES columns; those of int, and here of half, are multiples of 16.
template <class Number, int TILES>
constexpr bool HAS_COLUMNS = 8 <= TILES && TILES <= 32 && (TILES % 2 == 0 || std::is_same_v<Number, float>);

#ifdef __CUDACC__

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define SM90A(...) asm volatile(__VA_ARGS__)
#else
#define SM90A(...) __trap()
#endif

#define WGMMA_FLOAT(i) "+f"(sum[i].x[0]), "+f"(sum[i].x[1]), "+f"(sum[i].x[2]), "+f"(sum[i].x[3])
#define WGMMA_INT(i) "+r"(sum[i].x[0]), "+r"(sum[i].x[1]), "+r"(sum[i].x[2]), "+r"(sum[i].x[3])
#define WGMMA_PAIR(n, i) "+r"(reinterpret_cast<unsigned&>(sum[n].x[i]))
#define WGMMA_HALVES(i) WGMMA_PAIR(2 * (i), 0), WGMMA_PAIR(2 * (i), 1), WGMMA_PAIR(2 * (i) + 1, 0), WGMMA_PAIR(2 * (i) + 1, 1)

// The uses of wgmma_text.cuh: flags say what lies across K, or IF it adds. tf32 and bytes have none of the former, and integers
// no factors of 1 for A and B.
#define WGMMA_TEXT(IF, FLAG, TYPES, N, NAMES) \
    "{.reg .pred adds; setp." IF ".u32 adds, " FLAG ", 0; wgmma.mma_async.sync.aligned.m64n" N TYPES " {" NAMES "}, "
#define WGMMA_16_BITS(TYPES, N, NAMES, SUMS, A, B, A_FLAG, B_FLAG, FLAG, ...)                                                \
    SM90A(WGMMA_TEXT("ne", FLAG, TYPES, N, NAMES) A ", " B ", adds, 1, 1, " A_FLAG ", " B_FLAG ";}"                          \
          : SUMS                                                                                                             \
          : "l"(a), "l"(b), "n"(!A_K_MAJOR), "n"(!B_K_MAJOR), "n"(ADDS))
#define WGMMA_32_BITS(TYPES, N, NAMES, SUMS, A, B, ...) \
    SM90A(WGMMA_TEXT("eq", "0", TYPES, N, NAMES) A ", " B ", adds, 1, 1;}" : SUMS : "l"(a), "l"(b))
#define WGMMA_FP8(TYPES, N, NAMES, SUMS, A, B, FLAG, ...) \
    SM90A(WGMMA_TEXT("ne", FLAG, TYPES, N, NAMES) A ", " B ", adds, 1, 1;}" : SUMS : "l"(a), "l"(b), "n"(ADDS))
#define WGMMA_8_BITS(TYPES, N, NAMES, SUMS, A, B, ...) \
    SM90A(WGMMA_TEXT("eq", "0", TYPES, N, NAMES) A ", " B ", adds;}" : SUMS : "l"(a), "l"(b))
#define WGMMA_FRAGMENTS(TYPES, N, NAMES, SUMS, A0, A1, A2, A3, B, FLAG)                                                      \
    SM90A(WGMMA_TEXT("ne", FLAG, TYPES, N, NAMES) "{" A0 ", " A1 ", " A2 ", " A3 "}, " B ", adds, 1, 1;}"                    \
          : SUMS                                                                                                             \
          : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADDS))

// Each ends with an else, so that the next one is that of an `if` around it.
// clang-format off
#define WGMMA_EVEN(...) \
    if constexpr (TILES == 8) WGMMA_8(__VA_ARGS__, "64"); \
    else if constexpr (TILES == 10) WGMMA_10(__VA_ARGS__, "80"); \
    else if constexpr (TILES == 12) WGMMA_12(__VA_ARGS__, "96"); \
    else if constexpr (TILES == 14) WGMMA_14(__VA_ARGS__, "112"); \
    else if constexpr (TILES == 16) WGMMA_16(__VA_ARGS__, "128"); \
    else if constexpr (TILES == 18) WGMMA_18(__VA_ARGS__, "144"); \
    else if constexpr (TILES == 20) WGMMA_20(__VA_ARGS__, "160"); \
    else if constexpr (TILES == 22) WGMMA_22(__VA_ARGS__, "176"); \
    else if constexpr (TILES == 24) WGMMA_24(__VA_ARGS__, "192"); \
    else if constexpr (TILES == 26) WGMMA_26(__VA_ARGS__, "208"); \
    else if constexpr (TILES == 28) WGMMA_28(__VA_ARGS__, "224"); \
    else if constexpr (TILES == 30) WGMMA_30(__VA_ARGS__, "240"); \
    else WGMMA_32(__VA_ARGS__, "256")
#define WGMMA(...) \
    if constexpr (TILES == 9) WGMMA_9(__VA_ARGS__, "72"); \
    else if constexpr (TILES == 11) WGMMA_11(__VA_ARGS__, "88"); \
    else if constexpr (TILES == 13) WGMMA_13(__VA_ARGS__, "104"); \
    else if constexpr (TILES == 15) WGMMA_15(__VA_ARGS__, "120"); \
    else if constexpr (TILES == 17) WGMMA_17(__VA_ARGS__, "136"); \
    else if constexpr (TILES == 19) WGMMA_19(__VA_ARGS__, "152"); \
    else if constexpr (TILES == 21) WGMMA_21(__VA_ARGS__, "168"); \
    else if constexpr (TILES == 23) WGMMA_23(__VA_ARGS__, "184"); \
    else if constexpr (TILES == 25) WGMMA_25(__VA_ARGS__, "200"); \
    else if constexpr (TILES == 27) WGMMA_27(__VA_ARGS__, "216"); \
    else if constexpr (TILES == 29) WGMMA_29(__VA_ARGS__, "232"); \
    else if constexpr (TILES == 31) WGMMA_31(__VA_ARGS__, "248"); \
    else WGMMA_EVEN(__VA_ARGS__)
#define WGMMA_OF_HALVES(...) \
    if constexpr (TILES == 8) WGMMA_4(__VA_ARGS__, "64"); \
    else if constexpr (TILES == 10) WGMMA_5(__VA_ARGS__, "80"); \
    else if constexpr (TILES == 12) WGMMA_6(__VA_ARGS__, "96"); \
    else if constexpr (TILES == 14) WGMMA_7(__VA_ARGS__, "112"); \
    else if constexpr (TILES == 16) WGMMA_8(__VA_ARGS__, "128"); \
    else if constexpr (TILES == 18) WGMMA_9(__VA_ARGS__, "144"); \
    else if constexpr (TILES == 20) WGMMA_10(__VA_ARGS__, "160"); \
    else if constexpr (TILES == 22) WGMMA_11(__VA_ARGS__, "176"); \
    else if constexpr (TILES == 24) WGMMA_12(__VA_ARGS__, "192"); \
    else if constexpr (TILES == 26) WGMMA_13(__VA_ARGS__, "208"); \
    else if constexpr (TILES == 28) WGMMA_14(__VA_ARGS__, "224"); \
    else if constexpr (TILES == 30) WGMMA_15(__VA_ARGS__, "240"); \
    else WGMMA_16(__VA_ARGS__, "256")
// clang-format on

// sum += A B, with the 64 x 32 bytes of A and the 32 bytes x 8 TILES of B at the descriptors; unless it ADDS, sum = A B.
template <class T, bool A_K_MAJOR, bool B_K_MAJOR, bool ADDS = true, class Tile, int TILES>
__device__ __forceinline__ void wgmma(Tile (&sum)[TILES], uint64_t a, uint64_t b) {
    using Number = std::remove_extent_t<decltype(sum[0].x)>;
    static_assert(HAS_COLUMNS<Number, TILES>, "64 to 256 columns");
    constexpr bool FP8 = std::is_same_v<Number, float> && sizeof(T) == 1;
    static_assert(ADDS || FP8 || std::is_same_v<T, __half>, "a sum of its own for each slice is for fp8 and planes");
    if constexpr (std::is_same_v<Number, int>) {
        static_assert(A_K_MAJOR && B_K_MAJOR && sizeof(T) == 1, "int sums are of bytes, which lie along k");
        if constexpr (std::is_signed_v<T>)
            WGMMA_EVEN(WGMMA_8_BITS, WGMMA_INT, "k32.s32.s8.s8");
        else
            WGMMA_EVEN(WGMMA_8_BITS, WGMMA_INT, "k32.s32.u8.u8");
    } else if constexpr (std::is_same_v<Number, __half2>) {
        static_assert(std::is_same_v<T, __half>, "only half accumulates in half");
        WGMMA_OF_HALVES(WGMMA_16_BITS, WGMMA_HALVES, "k16.f16.f16.f16");
    } else if constexpr (std::is_same_v<T, __half>) {
        WGMMA(WGMMA_16_BITS, WGMMA_FLOAT, "k16.f32.f16.f16");
    } else if constexpr (std::is_same_v<T, float>) {
        static_assert(A_K_MAJOR && B_K_MAJOR, "tf32 lies along k");
        WGMMA(WGMMA_32_BITS, WGMMA_FLOAT, "k8.f32.tf32.tf32");
    } else if constexpr (FP8) {
        static_assert(A_K_MAJOR && B_K_MAJOR, "fp8 lies along k");
        if constexpr (std::is_same_v<T, Fp8<E4M3, E4M3>>)
            WGMMA(WGMMA_FP8, WGMMA_FLOAT, "k32.f32.e4m3.e4m3");
        else if constexpr (std::is_same_v<T, Fp8<E4M3, E5M2>>)
            WGMMA(WGMMA_FP8, WGMMA_FLOAT, "k32.f32.e4m3.e5m2");
        else if constexpr (std::is_same_v<T, Fp8<E5M2, E4M3>>)
            WGMMA(WGMMA_FP8, WGMMA_FLOAT, "k32.f32.e5m2.e4m3");
        else
            WGMMA(WGMMA_FP8, WGMMA_FLOAT, "k32.f32.e5m2.e5m2");
    } else {
        static_assert(std::is_same_v<T, __nv_bfloat16>, "float sums are of half, bfloat16, tf32 or fp8");
        WGMMA(WGMMA_16_BITS, WGMMA_FLOAT, "k16.f32.bf16.bf16");
    }
}

// The same of tf32, with A in registers.
template <class T, bool ADDS = true, class Tile, int TILES>
__device__ __forceinline__ void wgmma(Tile (&sum)[TILES], const unsigned (&a)[4], uint64_t b) {
    static_assert(HAS_COLUMNS<float, TILES>, "64 to 256 columns");
    static_assert(std::is_same_v<T, float>, "operands of 16 bits need no registers: they may lie across k in shared memory");
    WGMMA(WGMMA_FRAGMENTS, WGMMA_FLOAT, "k8.f32.tf32.tf32");
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
            asm volatile("" : WGMMA_FLOAT(n)::"memory");
        else if constexpr (std::is_same_v<Number, int>)
            asm volatile("" : WGMMA_INT(n)::"memory");
        else
            asm volatile("" : WGMMA_PAIR(n, 0), WGMMA_PAIR(n, 1)::"memory");
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

// The thread's warpgroup in its block. From one lane, so that the compiler knows that a warp has one: what follows from it, as
// descriptors do, is then in uniform registers, where wgmma reads it.
__device__ __forceinline__ int own_warpgroup() { return __shfl_sync(0xffffffffu, threadIdx.x / 128, 0); }
