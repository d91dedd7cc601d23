// half and half2.
#pragma once
#include "float16.h"

using __half = simt::Float16<simt::HalfFormat>;
using half = __half;
using __half2 = simt::Pair16<simt::HalfFormat>;
using half2 = __half2;

inline half __float2half(float x) { return x; }
inline half __float2half_rn(float x) { return x; }
inline half __double2half(double x) { return x; }
inline half __int2half_rn(int x) { return x; }
inline float __half2float(half x) { return x; }
inline half __ushort_as_half(unsigned short x) { return half::from_pattern(x); }
inline unsigned short __half_as_ushort(half x) { return x.pattern; }

inline half2 make_half2(half x, half y) { return {x, y}; }
inline half2 __halves2half2(half x, half y) { return {x, y}; }
inline half2 __half2half2(half x) { return {x, x}; }
inline half2 __float2half2_rn(float x) { return {x, x}; }
inline half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline half2 __float22half2_rn(float2 v) { return {v.x, v.y}; }
inline float2 __half22float2(half2 v) { return {v.x, v.y}; }
inline half __low2half(half2 v) { return v.x; }
inline half __high2half(half2 v) { return v.y; }
