// What follows a convolution and its bias: images that are added to the sums, and an activation.
#pragma once
#include "../../matmul/parts/epilogue.cuh"
#include "common.cuh"

namespace conv2d {

template <class T> struct Follows {
    const T* residual;  // of the first of `channels`; or null
    ImagesStrides stride;
    int activation, pixels, channels, P, Q;

    // Adds the residual. for_all(change) calls change(sum, row, col) for each of a thread's sums; these count from the first. What is
    // outside and never stored gets the last pixel's or channel's: behind a branch each load would wait for the one before.
    template <class ForAll> __device__ __forceinline__ void add(const ForAll& for_all, int first_pixel, int first_channel) const {
        if (residual == nullptr) return;
        for_all([&](Sum<T>& sum, int row, int col) {
            const int pixel = min(first_pixel + row, pixels - 1), channel = min(first_channel + col, channels - 1);
            sum += matmul::widen(residual[place(pixel) + channel * stride.c]);
        });
    }

    template <class ForAll> __device__ __forceinline__ void activate(const ForAll& for_all) const {
        const matmul::Epilogue<Sum<T>, T> epilogue(nullptr, nullptr, nullptr, 1, 0, activation, {}, 0);
        epilogue.activate_all(for_all);
    }

  private:
    __device__ __forceinline__ int64_t place(int pixel) const {
        return pixel / Q / P * stride.n + pixel / Q % P * stride.h + pixel % Q * stride.w;
    }
};

}  // namespace conv2d
