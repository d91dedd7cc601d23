// A launch as CUDA's driver gets it: learnt by capturing Python's launch into a graph, repeated by cuLaunchKernelEx.
//
// Two captures with different addresses tell where the kernel's parameters hold one: in a pointer, a struct or a tensor map. A
// launch that is not understood to the last byte, or that the driver refuses, stays Python's.
#pragma once
#include "python.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#if __has_include(<cuda.h>)
#include <cuda.h>
#include <dlfcn.h>
#endif

namespace driver {

using Addresses = std::vector<int64_t>;
struct Used {  // an address, by the tensor's slot
    size_t slot;
    int64_t offset;
};
using Launcher = std::function<void(const Addresses&, void* stream)>;  // Python's launch; throws python_error

#if defined(CUDA_VERSION) && CUDA_VERSION >= 12040

#define SPELT(NAME) #NAME
#define NAME_OF(FUNCTION) SPELT(FUNCTION)  // as cuda.h has it: cuGraphKernelNodeGetParams_v2
#define FIND(FUNCTION) decltype(&::FUNCTION) FUNCTION##_ = find<decltype(&::FUNCTION)>(NAME_OF(FUNCTION))

// libcuda's functions. It is there where there is a GPU.
struct Library {
    bool is_whole = true;
    void* const library = dlopen("libcuda.so.1", RTLD_NOW);
    FIND(cuStreamCreate);
    FIND(cuStreamDestroy);
    FIND(cuStreamBeginCapture);
    FIND(cuStreamEndCapture);
    FIND(cuThreadExchangeStreamCaptureMode);
    FIND(cuGraphGetNodes);
    FIND(cuGraphNodeGetType);
    FIND(cuGraphKernelNodeGetParams);
    FIND(cuGraphKernelNodeGetAttribute);
    FIND(cuGraphDestroy);
    FIND(cuFuncGetParamInfo);
    FIND(cuLaunchKernelEx);

    template <class Function> Function find(const char* name) {
        void* const found = library ? dlsym(library, name) : nullptr;
        is_whole &= found != nullptr;
        return reinterpret_cast<Function>(found);
    }
};
#undef FIND

const Library& cuda() {
    static const Library library;
    return library;
}

// What this thread does meanwhile does not disturb captures: neither its own nor, of the global kind, those of others.
struct Undisturbing {
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    Undisturbing() { cuda().cuThreadExchangeStreamCaptureMode_(&mode); }
    ~Undisturbing() { cuda().cuThreadExchangeStreamCaptureMode_(&mode); }
};

constexpr size_t ROOM = 4096, MOST = 256;  // of the parameters: bytes, as before CUDA 12.1, and number

struct Word {
    size_t at;
    Used address;
};

struct Kernel {
    CUfunction function = nullptr;
    CUlaunchConfig config{};
    std::vector<CUlaunchAttribute> attributes;
    std::vector<size_t> offsets;  // of the parameters
    std::vector<char> bytes;      // the parameters
    std::vector<Word> words;      // those of the bytes that are addresses
};

bool is_same_but_addresses(const Kernel& a, const Kernel& b) {
    const auto &x = a.config, &y = b.config;
    return a.function == b.function && a.offsets == b.offsets && a.bytes.size() == b.bytes.size() && x.gridDimX == y.gridDimX &&
           x.gridDimY == y.gridDimY && x.gridDimZ == y.gridDimZ && x.blockDimX == y.blockDimX && x.blockDimY == y.blockDimY &&
           x.blockDimZ == y.blockDimZ && x.sharedMemBytes == y.sharedMemBytes;
}

// The kernel of a graph that has nothing but it.
std::optional<Kernel> kernel_in(CUgraph graph) {
    CUgraphNode nodes[2];
    size_t count = 2;
    CUgraphNodeType type;
    CUDA_KERNEL_NODE_PARAMS params{};
    if (cuda().cuGraphGetNodes_(graph, nodes, &count) || count != 1 || cuda().cuGraphNodeGetType_(nodes[0], &type) ||
        type != CU_GRAPH_NODE_TYPE_KERNEL || cuda().cuGraphKernelNodeGetParams_(nodes[0], &params) || !params.kernelParams ||
        !params.func) {
        return std::nullopt;
    }
    Kernel kernel;
    kernel.function = params.func;
    kernel.config.gridDimX = params.gridDimX, kernel.config.gridDimY = params.gridDimY, kernel.config.gridDimZ = params.gridDimZ;
    kernel.config.blockDimX = params.blockDimX, kernel.config.blockDimY = params.blockDimY;
    kernel.config.blockDimZ = params.blockDimZ, kernel.config.sharedMemBytes = params.sharedMemBytes;
    for (size_t i = 0, offset, size; !cuda().cuFuncGetParamInfo_(params.func, i, &offset, &size); ++i) {
        if (offset + size > ROOM || i == MOST) return std::nullopt;
        kernel.bytes.resize(offset + size);
        std::memcpy(kernel.bytes.data() + offset, params.kernelParams[i], size);
        kernel.offsets.push_back(offset);
    }
    CUlaunchAttributeValue value{};
    if (!cuda().cuGraphKernelNodeGetAttribute_(nodes[0], CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, &value) && value.clusterDim.x) {
        kernel.attributes.push_back({CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, {}, value});
    }
    if (!cuda().cuGraphKernelNodeGetAttribute_(nodes[0], CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value) && value.cooperative) {
        return std::nullopt;
    }
    return kernel;
}

std::optional<Kernel> captured(const Launcher& launch, const Addresses& addresses) {
    const Undisturbing here;
    CUstream stream = nullptr;
    if (cuda().cuStreamCreate_(&stream, CU_STREAM_NON_BLOCKING)) return std::nullopt;
    std::optional<Kernel> found;
    if (!cuda().cuStreamBeginCapture_(stream, CU_STREAM_CAPTURE_MODE_RELAXED)) {
        bool is_launched = true;
        try {
            launch(addresses, stream);
        } catch (python_error&) {
            is_launched = false;
            PyErr_Clear();
        }
        CUgraph graph = nullptr;
        if (!cuda().cuStreamEndCapture_(stream, &graph) && graph) {
            if (is_launched) found = kernel_in(graph);
            cuda().cuGraphDestroy_(graph);
        }
    }
    cuda().cuStreamDestroy_(stream);
    return found;
}

// The launch without Python, or nothing. `alignments` are the last bits of each slot's address. The device is current. That a
// kernel overlaps the one before it is in no graph of one kernel.
std::shared_ptr<const Kernel> learnt(const Launcher& launch, const std::vector<Used>& uses, const Addresses& alignments,
                                     bool overlaps) {
    if (!cuda().is_whole) return nullptr;
    Addresses ones, others;  // of no memory; that differ by other distances, so that no two places are taken for one another
    for (size_t i = 0; i < alignments.size(); ++i) {
        ones.push_back(0x7a0000000000 + int64_t(i) * 0x400000000 + alignments[i]);
        others.push_back(0x7c0000000000 + int64_t(i) * 0x600000000 + alignments[i]);
    }
    auto kernel = captured(launch, ones), other = captured(launch, others);
    if (!kernel || !other || !is_same_but_addresses(*kernel, *other)) return nullptr;
    for (size_t at = 0; at < kernel->bytes.size(); at += sizeof(int64_t)) {
        const size_t size = std::min(sizeof(int64_t), kernel->bytes.size() - at);
        int64_t one = 0, another = 0;
        std::memcpy(&one, kernel->bytes.data() + at, size);
        std::memcpy(&another, other->bytes.data() + at, size);
        if (one == another) continue;
        const auto is_it = [&](const Used& used) {
            return one == ones[used.slot] + used.offset && another == others[used.slot] + used.offset;
        };
        const auto used = std::find_if(uses.begin(), uses.end(), is_it);
        if (used == uses.end()) return nullptr;
        kernel->words.push_back({at, *used});
    }
    if (overlaps) {
        CUlaunchAttributeValue value{};
        value.programmaticStreamSerializationAllowed = 1;
        kernel->attributes.push_back({CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION, {}, value});
    }
    return std::make_shared<const Kernel>(std::move(*kernel));
}

// Whether the driver took it.
bool launch(const Kernel& kernel, const Addresses& addresses, void* stream) {
    alignas(64) char bytes[ROOM];  // as tensor maps have to be
    std::memcpy(bytes, kernel.bytes.data(), kernel.bytes.size());
    for (const Word& word : kernel.words) {
        const int64_t address = addresses[word.address.slot] + word.address.offset;
        std::memcpy(bytes + word.at, &address, sizeof address);
    }
    void* parameters[MOST];
    for (size_t i = 0; i < kernel.offsets.size(); ++i) parameters[i] = bytes + kernel.offsets[i];
    CUlaunchConfig config = kernel.config;
    config.hStream = static_cast<CUstream>(stream);
    config.attrs = const_cast<CUlaunchAttribute*>(kernel.attributes.data());
    config.numAttrs = static_cast<unsigned>(kernel.attributes.size());
    PyThreadState* const python = PyEval_SaveThread();  // the queue may be full, and wait for a callback in Python
    const CUresult result = cuda().cuLaunchKernelEx_(&config, kernel.function, parameters, nullptr);
    PyEval_RestoreThread(python);
    return result == CUDA_SUCCESS;
}

#else  // without CUDA's header

struct Kernel {};
std::shared_ptr<const Kernel> learnt(const Launcher&, const std::vector<Used>&, const Addresses&, bool) { return nullptr; }
bool launch(const Kernel&, const Addresses&, void*) { return false; }

#endif

}  // namespace driver
