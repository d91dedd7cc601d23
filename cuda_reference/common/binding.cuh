// bind(module, name, kernel, overlaps): any kernel as a Python function (grid, block, shared_bytes, stream, *args).
//
// `overlaps`: it waits for earlier kernels, as overlap.cuh says, and is launched accordingly.
//
// Grid and block are three ints, the stream is its handle. For a pointer, the argument is an int (tensor.data_ptr()); for an
// int, a float or a bool it is one; for a struct whose members are all int or all int64_t it is a tuple of ints, and for a
// CUtensorMap the members of a TiledTensor (tensor_map.cuh). In the emulation a pointer may also be (address, bytes), which
// tells the launch its memory. It uses Python's C API, since compiling pybind11 takes longer than the kernel.
#pragma once
#include <Python.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch.cuh"
#include "tensor_map.cuh"

namespace binding {

struct Raised {};  // Python's exception is set

template <class... Text> [[noreturn]] void raise(PyObject* type, const char* format, Text... text) {
    PyErr_Format(type, format, text...);
    throw Raised{};
}

// A value's name in an exception's text: "grid", "kernel argument 3", "kernel argument 3 member 1".
struct Where {
    const char* what;
    int argument = -1, member = -1;

    std::string text() const {
        return what + (argument < 0 ? "" : ' ' + std::to_string(argument)) +
               (member < 0 ? "" : " member " + std::to_string(member));
    }
};

[[noreturn]] inline void wrong_type(Where where, const char* expected, PyObject* got) {
    raise(PyExc_TypeError, "%s must be %s, not %s", where.text().c_str(), expected, Py_TYPE(got)->tp_name);
}

template <class Int> Int to_int(PyObject* value, Where where) {
    using Limits = std::numeric_limits<Int>;
    if (!PyLong_Check(value) || PyBool_Check(value)) wrong_type(where, "an int", value);
    if constexpr (std::is_signed_v<Int>) {
        const long long number = PyLong_AsLongLong(value);
        if (!PyErr_Occurred() && number >= Limits::min() && number <= Limits::max()) return Int(number);
    } else {
        const unsigned long long number = PyLong_AsUnsignedLongLong(value);
        if (!PyErr_Occurred() && number <= Limits::max()) return Int(number);
    }
    PyErr_Clear();
    raise(PyExc_OverflowError, "%s: %S does not fit in %d bits", where.text().c_str(), value, int(8 * sizeof(Int)));
}

template <class P> P to_argument(PyObject* value, Where where) {
    if constexpr (std::is_pointer_v<P>) {
#ifndef __CUDACC__
        if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2) {
            const auto first = to_int<uintptr_t>(PyTuple_GET_ITEM(value, 0), where);
            simt::tensors.push_back({first, first + to_int<uintptr_t>(PyTuple_GET_ITEM(value, 1), where)});
            return reinterpret_cast<P>(first);
        }
#endif
        return reinterpret_cast<P>(to_int<uintptr_t>(value, where));
    } else if constexpr (std::is_same_v<P, bool>) {
        if (!PyBool_Check(value)) wrong_type(where, "a bool", value);
        return value == Py_True;
    } else if constexpr (std::is_integral_v<P>) {
        return to_int<P>(value, where);
    } else if constexpr (std::is_floating_point_v<P>) {
        if (!PyFloat_Check(value) && !PyLong_Check(value)) wrong_type(where, "a float", value);
        const double number = PyFloat_AsDouble(value);
        if (PyErr_Occurred()) throw Raised{};
        return P(number);
    } else if constexpr (std::is_same_v<P, CUtensorMap>) {
        return encode(to_argument<TiledTensor>(value, where));
    } else {
        static_assert(std::is_trivially_copyable_v<P> && (alignof(P) == 4 || alignof(P) == 8),
                      "a struct of int or of int64_t members");
        using Member = std::conditional_t<alignof(P) == 4, int32_t, int64_t>;
        constexpr int COUNT = sizeof(P) / sizeof(Member);
        if (!PyTuple_Check(value)) wrong_type(where, "a tuple", value);
        if (PyTuple_GET_SIZE(value) != COUNT)
            raise(PyExc_TypeError, "%s must be %d ints, not %zd", where.text().c_str(), COUNT, PyTuple_GET_SIZE(value));
        Member members[COUNT];
        for (int i = 0; i < COUNT; ++i)
            members[i] = to_int<Member>(PyTuple_GET_ITEM(value, i), {where.what, where.argument, i});
        P result;
        std::memcpy(&result, members, sizeof result);
        return result;
    }
}

inline dim3 to_dim3(PyObject* value, const char* what) {
    const uint3 v = to_argument<uint3>(value, {what});
    return dim3(v.x, v.y, v.z);
}

template <class... P, size_t... I> std::tuple<P...> to_arguments(PyObject* const* args, std::index_sequence<I...>) {
    return {to_argument<P>(args[I], {"kernel argument", int(I)})...};
}

// The body of a Python function: a C++ exception becomes Python's.
template <class Body> PyObject* guarded(const Body& body) {
    try {
        return body();
    } catch (const Raised&) {
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
    }
    return nullptr;
}

struct WithoutGil {  // releases the GIL during its lifetime
    PyThreadState* const state = PyEval_SaveThread();
    ~WithoutGil() { PyEval_RestoreThread(state); }
};

template <class... P> PyObject* call(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    return guarded([&] {
        const char* const name = PyCapsule_GetName(capsule);
        const auto kernel = reinterpret_cast<void (*)(P...)>(PyCapsule_GetPointer(capsule, name));
        const bool overlaps = PyCapsule_GetContext(capsule) != nullptr;
        constexpr int CONFIGURATION = 4;
        if (count < CONFIGURATION)
            raise(PyExc_TypeError, "%s takes grid, block, shared_bytes, stream and kernel arguments", name);
        if (count - CONFIGURATION != sizeof...(P))
            raise(PyExc_TypeError, "%s takes %d kernel arguments, not %zd", name, int(sizeof...(P)), count - CONFIGURATION);
        const dim3 grid = to_dim3(args[0], "grid"), block = to_dim3(args[1], "block");
        const auto shared_bytes = to_int<size_t>(args[2], {"shared_bytes"});
        const auto stream = to_argument<cudaStream_t>(args[3], {"stream"});
#ifndef __CUDACC__
        simt::tensors.clear();
#endif
        const auto values = to_arguments<P...>(args + CONFIGURATION, std::index_sequence_for<P...>());
        {
            const WithoutGil during_the_launch;
            std::apply([&](const P&... p) { launch(kernel, grid, block, shared_bytes, overlaps, stream, p...); }, values);
        }
        return Py_NewRef(Py_None);
    });
}

using Function = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t count);

// Definitions live until the process ends, as modules do.
inline void add_function(PyObject* module, const char* name, Function function, PyObject* self) {
    const auto code = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
    const auto definition = new PyMethodDef{name, code, METH_FASTCALL, nullptr};
    PyModule_AddObject(module, name, PyCFunction_New(definition, self));
}

}  // namespace binding

template <class... P> void bind(PyObject* module, const char* name, void (*kernel)(P...), bool overlaps) {
    PyObject* const capsule = PyCapsule_New(reinterpret_cast<void*>(kernel), name, nullptr);
    if (overlaps) PyCapsule_SetContext(capsule, capsule);
    binding::add_function(module, name, binding::call<P...>, capsule);
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
