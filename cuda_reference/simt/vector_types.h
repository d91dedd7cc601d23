// dim3, uint3 and the vectors. A vector is copied as one word of its size, so that a load of a float4 is one 16-byte access, as
// on the GPU: element-wise copies would hide a misaligned pointer and falsify traces.
#pragma once
#include <cstdint>

namespace simt {
template <int BYTES> struct WordOf;
template <> struct WordOf<4> {
    using type = uint32_t;
};
template <> struct WordOf<8> {
    using type = uint64_t;
};
template <> struct WordOf<16> {
    typedef float type __attribute__((vector_size(16)));
};
}  // namespace simt

struct uint3 {
    unsigned x, y, z;
};
struct int3 {
    int x, y, z;
};
struct float3 {
    float x, y, z;
};

struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
    constexpr operator uint3() const { return {x, y, z}; }
};

#define SIMT_VECTOR2(NAME, T)                         \
    union alignas(2 * sizeof(T)) NAME {               \
        struct {                                      \
            T x, y;                                   \
        };                                            \
        simt::WordOf<2 * sizeof(T)>::type word;       \
        NAME() = default;                             \
        NAME(T x, T y) : x(x), y(y) {}                \
        NAME(const NAME& other) : word(other.word) {} \
        NAME& operator=(const NAME& other) {          \
            word = other.word;                        \
            return *this;                             \
        }                                             \
    };                                                \
    inline NAME make_##NAME(T x, T y) { return {x, y}; }

#define SIMT_VECTOR4(NAME, T)                                \
    union alignas(4 * sizeof(T)) NAME {                      \
        struct {                                             \
            T x, y, z, w;                                    \
        };                                                   \
        simt::WordOf<4 * sizeof(T)>::type word;              \
        NAME() = default;                                    \
        NAME(T x, T y, T z, T w) : x(x), y(y), z(z), w(w) {} \
        NAME(const NAME& other) : word(other.word) {}        \
        NAME& operator=(const NAME& other) {                 \
            word = other.word;                               \
            return *this;                                    \
        }                                                    \
    };                                                       \
    inline NAME make_##NAME(T x, T y, T z, T w) { return {x, y, z, w}; }

SIMT_VECTOR2(int2, int)
SIMT_VECTOR2(uint2, unsigned)
SIMT_VECTOR2(float2, float)
SIMT_VECTOR2(double2, double)
SIMT_VECTOR2(longlong2, long long)
SIMT_VECTOR4(char4, signed char)
SIMT_VECTOR4(uchar4, unsigned char)
SIMT_VECTOR4(int4, int)
SIMT_VECTOR4(uint4, unsigned)
SIMT_VECTOR4(float4, float)
