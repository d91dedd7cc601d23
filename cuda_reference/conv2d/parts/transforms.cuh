// Winograd's transforms along one axis: a line of values at the pixels or taps to one at the points, and back.
//
// B^T, G and A^T of tritonkernels/cook_toom.py, for M outputs of 3 taps, by their symmetry in +-p: even and odd terms of a
// point are summed once for both signs. Mirrors tritonkernels/conv2d/parts/transforms.py.
#pragma once
#include <cuda_runtime.h>

namespace conv2d {

// The points of four outputs are 0, +-A, +-B and infinity; 1 / N of 0, of +-A and of +-B.
namespace points {
constexpr double A = 5.0 / 8, B = 3.0 / 2, AA = A * A, BB = B * B;
constexpr double NEAR_0 = 1 / (AA * BB), NEAR_A = 1 / (2 * AA * (AA - BB)), NEAR_B = 1 / (2 * BB * (BB - AA));
}  // namespace points

template <int M> constexpr int POINTS = M + 2;

// B^T d of M + 2 pixels.
template <class S> __device__ __forceinline__ void of_inputs(const S (&d)[4], S (&v)[4]) {
    v[0] = d[2] - d[0], v[1] = d[1] + d[2], v[2] = d[2] - d[1], v[3] = d[3] - d[1];
}

template <class S> __device__ __forceinline__ void of_inputs(const S (&d)[6], S (&v)[6]) {
    constexpr S A(points::A), B(points::B), AA(points::AA), BB(points::BB), AABB(points::AA * points::BB);
    const S even_a = d[4] - BB * d[2], odd_a = d[3] - BB * d[1];
    const S even_b = d[4] - AA * d[2], odd_b = d[3] - AA * d[1];
    v[0] = AABB * d[0] - (AA + BB) * d[2] + d[4];
    v[1] = even_a + A * odd_a, v[2] = even_a - A * odd_a;
    v[3] = even_b + B * odd_b, v[4] = even_b - B * odd_b;
    v[5] = AABB * d[1] - (AA + BB) * d[3] + d[5];
}

// G g of three taps.
template <class S> __device__ __forceinline__ void of_taps(const S (&g)[3], S (&u)[4]) {
    u[0] = -g[0], u[1] = S(0.5) * (g[0] + g[2] + g[1]), u[2] = S(0.5) * (g[0] + g[2] - g[1]), u[3] = g[2];
}

template <class S> __device__ __forceinline__ void of_taps(const S (&g)[3], S (&u)[6]) {
    constexpr S A(points::A), B(points::B), AA(points::AA), BB(points::BB);
    constexpr S NEAR_0(points::NEAR_0), NEAR_A(points::NEAR_A), NEAR_B(points::NEAR_B);
    const S even_a = g[0] + AA * g[2], even_b = g[0] + BB * g[2];
    u[0] = NEAR_0 * g[0];
    u[1] = NEAR_A * (even_a + A * g[1]), u[2] = NEAR_A * (even_a - A * g[1]);
    u[3] = NEAR_B * (even_b + B * g[1]), u[4] = NEAR_B * (even_b - B * g[1]);
    u[5] = g[2];
}

// A^T m of M + 2 points.
template <class S> __device__ __forceinline__ void to_outputs(const S (&m)[4], S (&y)[2]) {
    y[0] = m[0] + m[1] + m[2], y[1] = m[1] - m[2] + m[3];
}

template <class S> __device__ __forceinline__ void to_outputs(const S (&m)[6], S (&y)[4]) {
    constexpr S A(points::A), B(points::B), AA(points::AA), BB(points::BB);
    constexpr S AAA(points::A * points::AA), BBB(points::B * points::BB);
    const S even_a = m[1] + m[2], odd_a = m[1] - m[2], even_b = m[3] + m[4], odd_b = m[3] - m[4];
    y[0] = m[0] + even_a + even_b, y[1] = A * odd_a + B * odd_b;
    y[2] = AA * even_a + BB * even_b, y[3] = AAA * odd_a + BBB * odd_b + m[5];
}

// The i-th values of N lines, a line of the other axis.
template <class S, int N, int L> __device__ __forceinline__ void across(const S (&lines)[N][L], int i, S (&line)[N]) {
#pragma unroll
    for (int j = 0; j < N; ++j) line[j] = lines[j][i];
}

}  // namespace conv2d
