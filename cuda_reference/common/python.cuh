// What Python calls to launch a kernel (binding.cuh), compiled once for all modules. It uses Python's C API.
#pragma once
#include <cstring>
#include <exception>
#include <string>

#include "binding.cuh"
#include "encode.cuh"
#include "error.cuh"

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

[[noreturn]] void wrong_type(Where where, const char* expected, PyObject* got) {
    raise(PyExc_TypeError, "%s must be %s, not %s", where.text().c_str(), expected, Py_TYPE(got)->tp_name);
}

// The lowest `bytes` of an int, if the others only extend its sign.
uint64_t to_int(PyObject* value, bool is_signed, int bytes, Where where) {
    if (!PyLong_Check(value) || PyBool_Check(value)) wrong_type(where, "an int", value);
    const int unused = 64 - 8 * bytes;
    if (is_signed) {
        const int64_t number = PyLong_AsLongLong(value);
        if (!PyErr_Occurred() && int64_t(uint64_t(number) << unused) >> unused == number) return uint64_t(number);
    } else {
        const uint64_t number = PyLong_AsUnsignedLongLong(value);
        if (!PyErr_Occurred() && number << unused >> unused == number) return number;
    }
    PyErr_Clear();
    raise(PyExc_OverflowError, "%s: %S does not fit in %d bits", where.text().c_str(), value, 8 * bytes);
}

uint64_t to_address(PyObject* value, Where where) { return to_int(value, false, 8, where); }

void to_ints(PyObject* value, int bytes, int count, unsigned char* to, Where where) {
    if (!PyTuple_Check(value)) wrong_type(where, "a tuple", value);
    if (PyTuple_GET_SIZE(value) != count)
        raise(PyExc_TypeError, "%s must be %d ints, not %zd", where.text().c_str(), count, PyTuple_GET_SIZE(value));
    for (int i = 0; i < count; ++i) {
        const uint64_t number = to_int(PyTuple_GET_ITEM(value, i), true, bytes, {where.what, where.argument, i});
        std::memcpy(to + i * bytes, &number, bytes);  // of a little-endian machine, as are all that have CUDA
    }
}

dim3 to_dim3(PyObject* value, const char* what) {
    int32_t sizes[3];
    to_ints(value, 4, 3, reinterpret_cast<unsigned char*>(sizes), {what});
    return dim3(sizes[0], sizes[1], sizes[2]);
}

// Reads an argument, and writes the parameter's bytes.
void convert(PyObject* value, const Parameter& parameter, unsigned char* to, Where where) {
    const auto write = [&](const auto& result) { std::memcpy(to, &result, parameter.bytes); };
    switch (parameter.kind) {
        case Kind::POINTER:
#ifndef __CUDACC__
            if (PyTuple_Check(value) && PyTuple_GET_SIZE(value) == 2) {
                const uint64_t first = to_address(PyTuple_GET_ITEM(value, 0), where);
                simt::tensors.push_back({first, first + to_address(PyTuple_GET_ITEM(value, 1), where)});
                return write(first);
            }
#endif
            return write(to_address(value, where));
        case Kind::BOOL:
            if (!PyBool_Check(value)) wrong_type(where, "a bool", value);
            return write(value == Py_True);
        case Kind::SIGNED:
        case Kind::UNSIGNED: return write(to_int(value, parameter.kind == Kind::SIGNED, parameter.bytes, where));
        case Kind::FLOAT: {
            if (!PyFloat_Check(value) && !PyLong_Check(value)) wrong_type(where, "a float", value);
            const double number = PyFloat_AsDouble(value);
            if (PyErr_Occurred()) throw Raised{};
            return parameter.bytes == 4 ? write(float(number)) : write(number);
        }
        case Kind::TENSOR_MAP: {
            const auto encoded = [&](auto tensor) {
                to_ints(value, 8, sizeof tensor / 8, reinterpret_cast<unsigned char*>(&tensor), where);
                return encode(tensor);
            };
            const bool of_pixels = PyTuple_Check(value) && PyTuple_GET_SIZE(value) == sizeof(PixelTensor) / 8;
            return write(of_pixels ? encoded(PixelTensor{}) : encoded(TiledTensor{}));
        }
        case Kind::INTS: to_ints(value, parameter.bytes, parameter.count, to, where);
    }
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

PyObject* call(PyObject* capsule, PyObject* const* args, Py_ssize_t count) {
    return guarded([&] {
        const auto& kernel = *static_cast<const Kernel*>(PyCapsule_GetPointer(capsule, nullptr));
        constexpr int CONFIGURATION = 4;
        if (count < CONFIGURATION)
            raise(PyExc_TypeError, "%s takes grid, block, shared_bytes, stream and kernel arguments", kernel.name);
        if (count - CONFIGURATION != kernel.count)
            raise(PyExc_TypeError, "%s takes %d kernel arguments, not %zd", kernel.name, kernel.count, count - CONFIGURATION);
        const dim3 grid = to_dim3(args[0], "grid"), block = to_dim3(args[1], "block");
        const size_t shared_bytes = to_int(args[2], false, 8, {"shared_bytes"});
        const auto stream = reinterpret_cast<cudaStream_t>(to_address(args[3], {"stream"}));
#ifndef __CUDACC__
        simt::tensors.clear();
#endif
        alignas(ALIGNMENT) unsigned char bytes[MOST_BYTES];
        void* values[MOST_BYTES / ALIGNMENT];
        unsigned char* next = bytes;
        for (int i = 0; i < kernel.count; ++i) {
            const Parameter& parameter = kernel.parameters[i];
            convert(args[CONFIGURATION + i], parameter, next, {"kernel argument", i});
            values[i] = next;
            next += rounded_up(parameter.bytes * parameter.count);
        }
        {
            const WithoutGil during_the_launch;
            kernel.run(kernel, {grid, block, shared_bytes, stream}, values);
        }
        return Py_NewRef(Py_None);
    });
}

// Definitions live until the process ends, as modules do.
void add_function(PyObject* module, const char* name, Function function, PyObject* self) {
    const auto code = reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
    const auto definition = new PyMethodDef{name, code, METH_FASTCALL, nullptr};
    PyModule_AddObject(module, name, PyCFunction_New(definition, self));
}

void add_kernel(PyObject* module, const Kernel& kernel) {
    add_function(module, kernel.name, call, PyCapsule_New(new Kernel(kernel), nullptr, nullptr));
}

}  // namespace binding
