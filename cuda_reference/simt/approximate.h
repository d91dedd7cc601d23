// ex2.approx and rcp.approx (common/approximate.cuh), as wrong as the PTX ISA lets them be: the correctly rounded number and so
// many ulp, up or down as the bits of x have it.
#pragma once
#include <cmath>
#include <limits>

#include "chance.h"
#include "intrinsics.h"

namespace simt {

inline float without_subnormals(float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x; }

inline float off_by(int ulp, float exact, float x) {
    if (!std::isnormal(exact)) return without_subnormals(exact);
    const bool up = Chance{__float_as_uint(x)}() % 2;
    return without_subnormals(__uint_as_float(up ? __float_as_uint(exact) + ulp : __float_as_uint(exact) - ulp));
}

}  // namespace simt

inline float approximate_exp2(float x) {
    x = simt::without_subnormals(x);
    return x == 0 ? 1 : simt::off_by(2, float(std::exp2(double(x))), x);
}

inline float approximate_reciprocal(float x) {
    x = simt::without_subnormals(x);
    return simt::off_by(1, 1 / x, x);
}
