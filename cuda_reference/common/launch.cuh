// launch(kernel, grid, block, shared_bytes, overlaps, stream, args...): one name for <<<>>> and for the emulation. A fault
// becomes a std::runtime_error with CUDA's name and text. `overlaps`: the kernel waits as overlap.cuh says.
#pragma once
#include <cuda_runtime.h>

#ifdef __CUDACC__

[[noreturn]] void throw_error(cudaError_t error);  // error.cuh

inline void check(cudaError_t error) {
    if (error != cudaSuccess) throw_error(error);
}

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, bool overlaps, cudaStream_t stream, A... args) {
    constexpr size_t DEFAULT = 47 * 1024;  // of 48 KB with what a kernel declares statically; more only on request
    if (shared_bytes > DEFAULT)
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared_bytes)));
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    const cudaLaunchConfig_t config{grid, block, shared_bytes, stream, &attribute, overlaps ? 1u : 0u};
    check(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

#else

template <class... P, class... A>
void launch(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes, bool, cudaStream_t, const A&... args) {
    simt::run_grid(reinterpret_cast<const void*>(kernel), [&] { kernel(args...); }, grid, block, shared_bytes);
}

#endif
