// What a repeated call depends on, and whether it is for us at all.
#pragma once
#include "python.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <cstring>
#include <unordered_map>
#include <vector>

constexpr int64_t ALIGNMENT = 16;  // plans.ALIGNMENT

using Key = std::vector<int64_t>;
using Tensors = std::vector<const at::Tensor*>;

struct Hash {
    size_t operator()(const Key& key) const {
        uint64_t hash = key.size();
        for (uint64_t part : key) {
            hash = (hash ^ part) * 0x9E3779B97F4A7C15ull;
            hash ^= hash >> 32;
        }
        return hash;
    }
};

// Whether torch wants to see operators: _is_watched of torch_ops/operator.py.
bool is_watched() {
    const auto included = c10::impl::tls_local_dispatch_key_set().included_;
    return c10::impl::TorchDispatchModeTLS::any_modes_set() || at::impl::torch_function_mode_enabled() ||
           included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) || included.has(c10::DispatchKey::Functionalize) ||
           at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA) ||
           torch::autograd::ForwardADLevel::try_get_by_idx(0) || torch::jit::tracer::isTracing() || at::hasCallbacks();
}

// Whether torch's operators would record no gradients here, whatever their tensors are: in a kernel of another operator.
bool is_below_autograd() {
    return c10::impl::tls_local_dispatch_key_set().excluded_.has(c10::DispatchKey::AutogradFunctionality);
}

int64_t address_of(const at::Tensor& tensor) { return reinterpret_cast<int64_t>(tensor.data_ptr()); }

// Append what a call depends on of a tensor; false for one that plans.py refuses, or that may not be what it seems.
bool append_tensor(const at::Tensor& t, Key& key) {
    static const c10::DispatchKeySet strange{c10::DispatchKey::Python, c10::DispatchKey::FuncTorchBatched,
        c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize, c10::DispatchKey::ZeroTensor,
        c10::DispatchKey::Conjugate, c10::DispatchKey::Negative};
    if (t.layout() != at::kStrided || t.is_meta() || !t.has_storage() || t.key_set().has_any(strange)) return false;
    key.insert(key.end(), {'t', int64_t(t.scalar_type()), int64_t(t.device().type()), t.device().index(), address_of(t) % ALIGNMENT,
                           t.dim()});
    key.insert(key.end(), t.sizes().begin(), t.sizes().end());
    key.insert(key.end(), t.strides().begin(), t.strides().end());
    return true;
}

// What arguments are compared with or replaced by: torch.nn.Parameter, and switches.now of torch's switches.
struct {
    PyObject *parameter, *switches;
} python;

bool append_all(PyObject* const* values, Py_ssize_t count, Key& key, Tensors& tensors);

// Append an argument; false if its kind is unknown here.
bool append(PyObject* value, Key& key, Tensors& tensors) {
    const auto kind = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (value == Py_None) {
        key.push_back('n');
    } else if (kind == THPVariableClass || kind == python.parameter) {
        tensors.push_back(&THPVariable_Unpack(value));
        return append_tensor(*tensors.back(), key);
    } else if (PyFloat_CheckExact(value)) {
        const double number = PyFloat_AS_DOUBLE(value);
        int64_t bits;
        std::memcpy(&bits, &number, sizeof bits);
        key.insert(key.end(), {'f', bits});
    } else if (PyBool_Check(value)) {
        key.insert(key.end(), {'b', value == Py_True});
    } else if (PyLong_CheckExact(value)) {
        int overflow = 0;
        key.insert(key.end(), {'i', PyLong_AsLongLongAndOverflow(value, &overflow)});
        return !overflow;
    } else if (PyUnicode_CheckExact(value)) {
        Py_ssize_t size = 0;
        const char* text = PyUnicode_AsUTF8AndSize(value, &size);
        if (!text) return PyErr_Clear(), false;
        key.insert(key.end(), {'s', size});
        key.insert(key.end(), text, text + size);
        if (std::strcmp(text, "torch")) return true;
        THPObjectPtr now(checked(PyObject_CallNoArgs(python.switches)));  // that precision follows them
        return append(now.get(), key, tensors);
    } else if (THPDtype_Check(value)) {
        key.insert(key.end(), {'d', int64_t(reinterpret_cast<THPDtype*>(value)->scalar_type)});
    } else if (THPMemoryFormat_Check(value)) {
        key.insert(key.end(), {'m', int64_t(reinterpret_cast<THPMemoryFormat*>(value)->memory_format)});
    } else if (PyTuple_CheckExact(value) || PyList_CheckExact(value)) {
        key.insert(key.end(), {PyList_CheckExact(value) ? '[' : '(', PySequence_Fast_GET_SIZE(value)});
        if (Py_EnterRecursiveCall("")) return PyErr_Clear(), false;  // a list may contain itself
        const bool is_known = append_all(PySequence_Fast_ITEMS(value), PySequence_Fast_GET_SIZE(value), key, tensors);
        Py_LeaveRecursiveCall();
        return is_known;
    } else {
        return false;
    }
    return true;
}

bool append_all(PyObject* const* values, Py_ssize_t count, Key& key, Tensors& tensors) {
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!append(values[i], key, tensors)) return false;
    }
    return true;
}
