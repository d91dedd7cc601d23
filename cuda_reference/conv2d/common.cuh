// What every conv2d kernel shares: sizes, strides, and the names. out (N, K, P, Q) = input (N, C, H, W) * weight (K, C/groups, R, S).
#pragma once
#include "../common/index.cuh"

namespace conv2d {

struct Geometry {
    int N, C, H, W, K, R, S, P, Q;
    int step_h, step_w, padding_h, padding_w, dilation_h, dilation_w, groups;
};

// In elements: NCHW, NHWC and CHWN are three sets of strides.
struct Strides {
    int64_t in, ic, ih, iw;
    int64_t wk, wc, wr, ws;
    int64_t bias;
    int64_t on, ok, op, oq;
};

}  // namespace conv2d
