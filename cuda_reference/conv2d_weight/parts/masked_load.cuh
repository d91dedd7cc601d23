// Loads of several elements that may not exist: by a predicate. The compiler would branch around each, and wait for it.
#pragma once
#include "../../conv2d/parts/runs.cuh"

namespace conv2d_weight {

// *from, or 0 where it must not be read: where `exists` is 0.
#ifdef __CUDACC__
__device__ __forceinline__ void load_or_zero(uint4& to, const uint4* from, unsigned exists) {
    asm("{\n.reg .pred p;\nsetp.ne.u32 p, %5, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\nmov.b32 %2, 0;\nmov.b32 %3, 0;\n"
        "@p ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];\n}"
        : "=&r"(to.x), "=&r"(to.y), "=&r"(to.z), "=&r"(to.w)
        : "l"(from), "r"(exists));
}
__device__ __forceinline__ void load_or_zero(uint2& to, const uint2* from, unsigned exists) {
    asm("{\n.reg .pred p;\nsetp.ne.u32 p, %3, 0;\nmov.b32 %0, 0;\nmov.b32 %1, 0;\n@p ld.global.nc.v2.u32 {%0, %1}, [%2];\n}"
        : "=&r"(to.x), "=&r"(to.y)
        : "l"(from), "r"(exists));
}
__device__ __forceinline__ void load_or_zero(unsigned& to, const unsigned* from, unsigned exists) {
    asm("{\n.reg .pred p;\nsetp.ne.u32 p, %2, 0;\nmov.b32 %0, 0;\n@p ld.global.nc.u32 %0, [%1];\n}"
        : "=&r"(to)
        : "l"(from), "r"(exists));
}
#else
template <class Bits> void load_or_zero(Bits& to, const Bits* from, unsigned exists) { to = exists ? *from : Bits{}; }
#endif

// WIDTH contiguous, aligned elements; zeros where they do not exist.
template <int WIDTH, class T>
__device__ __forceinline__ void load_or_zeros(conv2d::Sum<T> (&to)[WIDTH], const T* from, unsigned exist) {
    T held[WIDTH];
    if constexpr (WIDTH == 1) {
        held[0] = T(0);
        if (exist) held[0] = *from;
    } else {
        conv2d::Together<WIDTH, T> bits;
        using Piece = typename decltype(bits)::Piece;
#pragma unroll
        for (int i = 0; i < bits.COUNT; ++i) load_or_zero(bits.pieces[i], reinterpret_cast<const Piece*>(from) + i, exist);
        std::memcpy(held, &bits, sizeof bits);
    }
#pragma unroll
    for (int i = 0; i < WIDTH; ++i) to[i] = conv2d::Sum<T>(held[i]);
}

}  // namespace conv2d_weight
