// bind(module, name, kernel, overlaps): any kernel as a Python function (grid, block, shared_bytes, stream, *args).
//
// `overlaps`: it waits for earlier kernels, as overlap.cuh says, and is launched accordingly.
//
// Grid and block are three ints, the stream is its handle. For a pointer, the argument is an int (tensor.data_ptr()); for an
// int, a float or a bool it is one; for a struct whose members are all int or all int64_t it is a tuple of ints, and for a
// CUtensorMap the members of a TiledTensor or a PixelTensor (tensor_map.cuh). In the emulation a pointer may also be (address, bytes), which
// tells the launch its memory.
//
// A signature becomes data here (Parameter), by which one function reads the arguments of all kernels (python.cuh): compiling it
// for each signature, like pybind11, takes longer than many a kernel. It is compiled once for all modules.
#pragma once
#include <Python.h>

#include <cstdint>
#include <type_traits>
#include <utility>

#include "launch.cuh"
#include "tensor_map.cuh"

namespace binding {

// What a kernel takes: one value of so many bytes, or `count` ints of so many.
enum class Kind { POINTER, BOOL, SIGNED, UNSIGNED, FLOAT, TENSOR_MAP, INTS };

struct Parameter {
    Kind kind;
    int bytes, count = 1;
};

template <class P> constexpr Parameter parameter() {
    if constexpr (std::is_pointer_v<P>) {
        return {Kind::POINTER, sizeof(P)};
    } else if constexpr (std::is_same_v<P, bool>) {
        return {Kind::BOOL, sizeof(P)};
    } else if constexpr (std::is_integral_v<P>) {
        return {std::is_signed_v<P> ? Kind::SIGNED : Kind::UNSIGNED, sizeof(P)};
    } else if constexpr (std::is_floating_point_v<P>) {
        return {Kind::FLOAT, sizeof(P)};
    } else if constexpr (std::is_same_v<P, CUtensorMap>) {
        return {Kind::TENSOR_MAP, sizeof(P)};
    } else {
        static_assert(std::is_trivially_copyable_v<P> && (alignof(P) == 4 || alignof(P) == 8),
                      "a struct of int or of int64_t members");
        return {Kind::INTS, alignof(P), sizeof(P) / alignof(P)};
    }
}

struct Launch {
    dim3 grid, block;
    size_t shared_bytes;
    cudaStream_t stream;
};

constexpr size_t ALIGNMENT = 64, MOST_BYTES = 8192;  // of an argument, as a CUtensorMap wants; of all arguments

constexpr size_t rounded_up(size_t bytes) { return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

struct Kernel {
    const char* name;
    void (*address)();
    bool overlaps;
    const Parameter* parameters;
    int count;  // of them
    void (*run)(const Kernel& kernel, const Launch& launch, void* const* values);
};

template <class... P, size_t... I>
void run(void (*kernel)(P...), bool overlaps, const Launch& l, void* const* values, std::index_sequence<I...>) {
    launch(kernel, l.grid, l.block, l.shared_bytes, overlaps, l.stream, *static_cast<const P*>(values[I])...);
}

// Python's function of a kernel, a capsule.
PyObject* call(PyObject* capsule, PyObject* const* args, Py_ssize_t count);

using Function = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count);
void add_function(PyObject* module, const char* name, Function function, PyObject* self);
void add_kernel(PyObject* module, const Kernel& kernel);

}  // namespace binding

template <class... P> void bind(PyObject* module, const char* name, void (*kernel)(P...), bool overlaps) {
    using namespace binding;
    static_assert((0 + ... + rounded_up(sizeof(P))) <= MOST_BYTES);
    static constexpr Parameter parameters[] = {parameter<P>()..., {Kind::INTS, 0, 0}};  // the last one as there may be no other
    const auto run = [](const Kernel& kernel, const Launch& launch, void* const* values) {
        binding::run(reinterpret_cast<void (*)(P...)>(kernel.address), kernel.overlaps, launch, values,
                     std::index_sequence_for<P...>());
    };
    add_kernel(module, {name, reinterpret_cast<void (*)()>(kernel), overlaps, parameters, int(sizeof...(P)), run});
}

// KERNEL_MODULE(name, module) { bind(module, ...); } is what Python imports as `name`.
#define KERNEL_MODULE(NAME, MODULE)                                                           \
    static void bind_all(PyObject* MODULE);                                                   \
    PyMODINIT_FUNC KERNEL_MODULE_INIT(NAME)() {                                               \
        static PyModuleDef definition = {                                                     \
            PyModuleDef_HEAD_INIT, KERNEL_MODULE_NAME(NAME), nullptr, -1, nullptr, nullptr, nullptr, nullptr, nullptr}; \
        PyObject* const module = PyModule_Create(&definition);                                \
        if (module != nullptr) bind_all(module);                                              \
        return PyErr_Occurred() ? nullptr : module;                                           \
    }                                                                                         \
    static void bind_all(PyObject* MODULE)
#define KERNEL_MODULE_INIT(NAME) KERNEL_MODULE_INIT_OF(NAME)
#define KERNEL_MODULE_INIT_OF(NAME) PyInit_##NAME
#define KERNEL_MODULE_NAME(NAME) KERNEL_MODULE_NAME_OF(NAME)
#define KERNEL_MODULE_NAME_OF(NAME) #NAME
