// 128-bit loads with a cache policy for L2, made once per thread (PTX createpolicy). It is only a hint: no result depends on
// it, and before sm_80 and in the emulation there is none.
#pragma once
#include <cstdint>

#include <cuda_runtime.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800

class Loader {
    uint64_t policy;

  public:
    __device__ __forceinline__ explicit Loader(bool evict_first) {
        if (evict_first)
            asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
        else
            asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
    }

    // From an aligned address of read-only memory.
    __device__ __forceinline__ uint4 load(const void* from) const {
        uint4 quad;
        asm("ld.global.nc.L1::evict_first.L2::cache_hint.v4.u32 {%0, %1, %2, %3}, [%4], %5;"
            : "=r"(quad.x), "=r"(quad.y), "=r"(quad.z), "=r"(quad.w)
            : "l"(from), "l"(policy));
        return quad;
    }
};

#else

class Loader {
  public:
    __device__ __forceinline__ explicit Loader(bool) {}
    __device__ __forceinline__ uint4 load(const void* from) const { return *static_cast<const uint4*>(from); }
};

#endif
