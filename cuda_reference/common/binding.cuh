// bind(module, name, kernel): any kernel as a Python function (grid, block, shared_bytes, stream, *args).
//
// Grid and block are three ints, the stream is its handle. An argument is an int where the kernel takes a pointer
// (tensor.data_ptr()), an int, a float or a bool where it takes these, and a tuple of ints where it takes a struct
// whose members are all int or all int64_t.
#pragma once
#include <pybind11/pybind11.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <tuple>
#include <type_traits>
#include <utility>

#include "launch.cuh"

namespace binding {

namespace py = pybind11;

[[noreturn]] inline void wrong_type(const std::string& where, const char* expected, py::handle got) {
    throw py::type_error(where + " must be " + expected + ", not " + Py_TYPE(got.ptr())->tp_name);
}

template <class Int> Int to_int(py::handle value, const std::string& where) {
    if (!PyLong_Check(value.ptr()) || PyBool_Check(value.ptr())) wrong_type(where, "an int", value);
    const auto in_range =
        py::reinterpret_steal<py::object>(PyLong_FromUnsignedLongLong(std::numeric_limits<Int>::max())) >= value &&
        py::reinterpret_steal<py::object>(PyLong_FromLongLong(std::numeric_limits<Int>::min())) <= value;
    if (!in_range)
        throw std::overflow_error(where + ": " + std::string(py::str(value)) + " does not fit in " +
                                  std::to_string(8 * sizeof(Int)) + " bits");
    return std::is_signed_v<Int> ? Int(PyLong_AsLongLong(value.ptr())) : Int(PyLong_AsUnsignedLongLong(value.ptr()));
}

template <class P> P to_argument(py::handle value, const std::string& where) {
    if constexpr (std::is_pointer_v<P>) {
        return reinterpret_cast<P>(to_int<uintptr_t>(value, where));
    } else if constexpr (std::is_same_v<P, bool>) {
        if (!PyBool_Check(value.ptr())) wrong_type(where, "a bool", value);
        return value.ptr() == Py_True;
    } else if constexpr (std::is_integral_v<P>) {
        return to_int<P>(value, where);
    } else if constexpr (std::is_floating_point_v<P>) {
        if (!PyFloat_Check(value.ptr()) && !PyLong_Check(value.ptr())) wrong_type(where, "a float", value);
        const double number = PyFloat_AsDouble(value.ptr());
        if (PyErr_Occurred()) throw py::error_already_set();
        return P(number);
    } else {
        static_assert(std::is_trivially_copyable_v<P> && (alignof(P) == 4 || alignof(P) == 8),
                      "a struct of int or of int64_t members");
        using Member = std::conditional_t<alignof(P) == 4, int32_t, int64_t>;
        constexpr size_t COUNT = sizeof(P) / sizeof(Member);
        if (!PyTuple_Check(value.ptr())) wrong_type(where, "a tuple", value);
        const auto members = py::reinterpret_borrow<py::tuple>(value);
        if (members.size() != COUNT)
            throw py::type_error(where + " must be " + std::to_string(COUNT) + " ints, not " +
                                 std::to_string(members.size()));
        Member values[COUNT];
        for (size_t i = 0; i < COUNT; ++i)
            values[i] = to_int<Member>(members[i], where + " member " + std::to_string(i));
        P result;
        std::memcpy(&result, values, sizeof result);
        return result;
    }
}

inline dim3 to_dim3(py::handle value, const char* where) {
    const uint3 v = to_argument<uint3>(value, where);
    return dim3(v.x, v.y, v.z);
}

template <class... P, size_t... I> std::tuple<P...> to_arguments(const py::args& args, std::index_sequence<I...>) {
    return {to_argument<P>(args[I], "kernel argument " + std::to_string(I))...};
}

}  // namespace binding

template <class... P> void bind(pybind11::module_& module, const char* name, void (*kernel)(P...)) {
    namespace py = pybind11;
    module.def(name,
               [name, kernel](py::tuple grid, py::tuple block, size_t shared_bytes, uintptr_t stream, py::args args) {
                   if (args.size() != sizeof...(P))
                       throw py::type_error(std::string(name) + " takes " + std::to_string(sizeof...(P)) +
                                            " kernel arguments, not " + std::to_string(args.size()));
                   const auto values = binding::to_arguments<P...>(args, std::index_sequence_for<P...>());
                   const dim3 blocks = binding::to_dim3(grid, "grid"), threads = binding::to_dim3(block, "block");
                   py::gil_scoped_release others_may_run;
                   std::apply(
                       [&](const P&... p) {
                           launch(kernel, blocks, threads, shared_bytes, reinterpret_cast<cudaStream_t>(stream), p...);
                       },
                       values);
               });
}
