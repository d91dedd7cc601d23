// __nv_bfloat16 and __nv_bfloat162.
#pragma once
#include "float16.h"

using __nv_bfloat16 = simt::Float16<simt::BFloat16Format>;
using nv_bfloat16 = __nv_bfloat16;
using __nv_bfloat162 = simt::Pair16<simt::BFloat16Format>;
using nv_bfloat162 = __nv_bfloat162;

inline __nv_bfloat16 __float2bfloat16(float x) { return x; }
inline __nv_bfloat16 __float2bfloat16_rn(float x) { return x; }
inline __nv_bfloat16 __double2bfloat16(double x) { return x; }
inline __nv_bfloat16 __int2bfloat16_rn(int x) { return x; }
inline float __bfloat162float(__nv_bfloat16 x) { return x; }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short x) { return __nv_bfloat16::from_pattern(x); }
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 x) { return x.pattern; }

inline __nv_bfloat162 make_bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __halves2bfloat162(__nv_bfloat16 x, __nv_bfloat16 y) { return {x, y}; }
inline __nv_bfloat162 __bfloat162bfloat162(__nv_bfloat16 x) { return {x, x}; }
inline __nv_bfloat162 __float2bfloat162_rn(float x) { return {x, x}; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
inline __nv_bfloat162 __float22bfloat162_rn(float2 v) { return {v.x, v.y}; }
inline float2 __bfloat1622float2(__nv_bfloat162 v) { return {v.x, v.y}; }
inline __nv_bfloat16 __low2bfloat16(__nv_bfloat162 v) { return v.x; }
inline __nv_bfloat16 __high2bfloat16(__nv_bfloat162 v) { return v.y; }
