// What follows a convolution and its bias: images that are added to the sums, and an activation.
#pragma once
#include "../../matmul/parts/epilogue.cuh"
#include "common.cuh"

namespace conv2d {

template <class T> struct Follows {
    const T* residual;  // where the first of `channels` begins, or null
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

    // Adds the residual to sums of one image, and activates them: for_all(change) calls change(sum, channel, p, q) for each of a
    // thread's sums; these count from the first.
    template <class ForAll>
    __device__ __forceinline__ void finish(const ForAll& for_all, int image, int first_channel, int first_p, int first_q) const {
        if (residual != nullptr)
            for_all([&](Sum<T>& sum, int channel, int p, int q) {
                sum += matmul::widen(*at(image, min(first_channel + channel, channels - 1), min(first_p + p, P - 1), min(first_q + q, Q - 1)));
            });
        activate([&](const auto& change) { for_all([&](Sum<T>& sum, auto...) { change(sum, 0, 0); }); });
    }

    __device__ __forceinline__ const T* at(int image, int channel, int p, int q) const {
        return residual + image * stride.n + channel * stride.c + p * stride.h + q * stride.w;
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
