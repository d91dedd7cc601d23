// Loads of 4, 8 or 16 bytes that may not exist: by a predicate. The compiler would branch around each, and wait for it.
#pragma once
#include <cuda_runtime.h>

// *from, or 0 where `exists` is 0 and it must not be read.
#ifdef __CUDACC__
__device__ __forceinline__ void load_or_zero(uint4& to, const uint4* from, unsigned exists) {
    asm("{.reg .pred p; setp.ne.u32 p, %5, 0; mov.b32 %0, 0; mov.b32 %1, 0; mov.b32 %2, 0; mov.b32 %3, 0; "
        "@p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];}"
        : "=&r"(to.x), "=&r"(to.y), "=&r"(to.z), "=&r"(to.w)
        : "l"(from), "r"(exists));
}
__device__ __forceinline__ void load_or_zero(uint2& to, const uint2* from, unsigned exists) {
    asm("{.reg .pred p; setp.ne.u32 p, %3, 0; mov.b32 %0, 0; mov.b32 %1, 0; @p ld.global.nc.v2.u32 {%0, %1}, [%2];}"
        : "=&r"(to.x), "=&r"(to.y)
        : "l"(from), "r"(exists));
}
__device__ __forceinline__ void load_or_zero(unsigned& to, const unsigned* from, unsigned exists) {
    asm("{.reg .pred p; setp.ne.u32 p, %2, 0; mov.b32 %0, 0; @p ld.global.nc.u32 %0, [%1];}"
        : "=&r"(to)
        : "l"(from), "r"(exists));
}
#else
template <class Bits> void load_or_zero(Bits& to, const Bits* from, unsigned exists) { to = exists ? *from : Bits{}; }
#endif
