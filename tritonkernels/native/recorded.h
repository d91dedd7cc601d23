// The gradients of a repeated call, as a node of torch's autograd.
#pragma once
#include "recipe.h"

#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

struct RecordedBackward : torch::autograd::Node {
    std::shared_ptr<Plan> plan;
    std::vector<torch::autograd::SavedVariable> saved;
    std::vector<bool> kept;

    // The engine sums them to the tensors' shapes, and converts them to their types.
    variable_list apply(variable_list&& grads) override {
        if (!grads[0].defined()) return variable_list(kept.size());
        std::unique_lock lock(mutex_);  // before the GIL, which hooks of saved tensors may let go
        const pybind11::gil_scoped_acquire gil;
        try {
            variable_list given{grads[0]};
            std::vector<bool> wanted;
            for (size_t i = 0; i < kept.size(); ++i) {
                given.push_back(kept[i] ? saved[i].unpack(getptr()) : at::Tensor());
                wanted.push_back(task_should_compute_output(i));
            }
            lock.unlock();
            return gradients(*plan, given, wanted);
        } catch (python_error& error) {
            error.persist();
            throw;
        }
    }

    void release_variables() override {
        const std::lock_guard lock(mutex_);  // another thread may unpack them
        for (auto& variable : saved) variable.reset_data();
    }

    ~RecordedBackward() override {
        if (!Py_IsInitialized()) return;  // C++ may hold a graph for longer than Python lives; it frees nothing then
        const pybind11::gil_scoped_acquire gil;
        plan = nullptr;
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
void record(const at::Tensor& result, const Tensors& given, std::shared_ptr<Plan> plan, const std::vector<bool>& kept) {
    const auto node = new_node<RecordedBackward>();
    node->plan = std::move(plan);
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
