// The gradients of a repeated call, as a node of torch's autograd.
#pragma once
#include "key.h"
#include "python.h"

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

// The gradients of a call: backward(grad, tensors, wanted) of Python, with None for tensors that were not kept.
struct RecordedBackward : torch::autograd::Node {
    THPObjectPtr function;
    std::vector<torch::autograd::SavedVariable> saved;
    std::vector<bool> kept;

    torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
        torch::autograd::variable_list result(kept.size());
        if (!grads[0].defined()) return result;
        std::unique_lock lock(mutex_);  // before the GIL, which hooks of saved tensors may let go
        const pybind11::gil_scoped_acquire gil;
        const auto count = static_cast<Py_ssize_t>(kept.size());
        THPObjectPtr grad(checked(THPVariable_Wrap(grads[0]))), tensors(checked(PyTuple_New(count))), wanted(checked(PyTuple_New(count)));
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* tensor = kept[i] ? THPVariable_Wrap(saved[i].unpack(getptr())) : own(Py_None);
            PyTuple_SET_ITEM(tensors.get(), i, tensor);
            PyTuple_SET_ITEM(wanted.get(), i, own(task_should_compute_output(i) ? Py_True : Py_False));
        }
        lock.unlock();
        THPObjectPtr found(PyObject_CallFunctionObjArgs(function.get(), grad.get(), tensors.get(), wanted.get(), nullptr));
        if (!found) {
            python_error error;
            error.persist();
            throw error;
        }
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* gradient = PyTuple_GET_ITEM(found.get(), i);
            if (gradient != Py_None) result[i] = THPVariable_Unpack(gradient);
        }
        return result;
    }

    void release_variables() override {
        const std::lock_guard lock(mutex_);  // another thread may unpack them
        for (auto& variable : saved) variable.reset_data();
    }

    ~RecordedBackward() override {
        if (!Py_IsInitialized()) return;  // C++ may hold a graph for longer than Python lives; it frees nothing then
        const pybind11::gil_scoped_acquire gil;
        function = nullptr;
    }
};

// Nodes are counted by shared pointers before torch 2.13, by themselves since.
template <class T>
auto new_node() {
    if constexpr (std::is_base_of_v<c10::intrusive_ptr_target, T>) {
        return c10::make_intrusive<T>();
    } else {
        return std::shared_ptr<T>(new T(), [](T* node) { deleteNode(node); });
    }
}

// Make `result` depend on those of its call's tensors that need a gradient; `kept` are the tensors to keep for backward.
void record(const at::Tensor& result, const Tensors& given, PyObject* backward, const std::vector<bool>& kept) {
    const auto node = new_node<RecordedBackward>();
    node->function = own(backward);
    node->kept = kept;
    node->saved.resize(given.size());
    torch::autograd::edge_list edges;
    for (size_t i = 0; i < given.size(); ++i) {
        edges.push_back(torch::autograd::impl::gradient_edge(*given[i]));
        if (kept[i]) node->saved[i] = torch::autograd::SavedVariable(*given[i], false);
    }
    node->set_next_edges(std::move(edges));
    torch::autograd::set_history(result, node);
}
