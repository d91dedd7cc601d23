// The gradients of a repeated call without Python.
//
// The first backward of a kind is Python's, and is watched: the calls that it makes of the operators, and which of the tensors
// that it is given or that these calls make their operands and the gradients are views of. A recipe repeats the calls by their
// plans. A tensor that is a view of none is torch's work, as a sum is: then that kind of backward stays Python's.
#pragma once
#include "plan.h"

#include <optional>
#include <utility>

using torch::autograd::variable_list;

constexpr size_t RECIPES = 64;  // of a plan

// A tensor, by the slot of the one that begins where it does.
struct View {
    size_t slot;
    std::vector<int64_t> sizes, strides;

    at::Tensor of(const variable_list& slots) const {
        const at::Tensor& whole = slots[slot];
        return whole.sizes() == sizes && whole.strides() == strides ? whole : whole.as_strided(sizes, strides);
    }
};

// Slots are the gradient of the result, the call's tensors, and what the calls of the recipe make.
struct Recipe {
    struct Call {
        std::weak_ptr<Plan> plan;
        std::vector<size_t> operands;  // the slots of the tensors that begin where they do
    };
    std::vector<Call> calls;
    std::vector<std::optional<View>> gradients;

    // None if a plan was forgotten, or as `repeat`.
    std::optional<variable_list> follow(variable_list slots) const {
        for (const Call& call : calls) {
            const auto plan = call.plan.lock();
            if (!plan) return {};
            driver::Addresses addresses;
            for (const size_t slot : call.operands) addresses.push_back(address_of(slots[slot]));
            slots.push_back(repeat(*plan, std::move(addresses)));
            if (!slots.back().defined()) return {};
        }
        variable_list found;
        for (const auto& view : gradients) found.push_back(view ? view->of(slots) : at::Tensor());
        return found;
    }
};

// Watches this thread's calls for as long as it lives.
class Watch {
    variable_list slots;
    std::vector<Recipe::Call> calls;
    Watch* const outer = std::exchange(current, this);

    // The slot of the tensor that begins where this one does. None if there is none, or two: then who knows which one will.
    std::optional<size_t> find(const at::Tensor& tensor) const {
        std::optional<size_t> found;
        for (size_t slot = 0; slot < slots.size(); ++slot) {
            const at::Tensor& whole = slots[slot];
            if (!whole.defined() || !whole.is_alias_of(tensor)) continue;
            if (found || whole.storage_offset() != tensor.storage_offset() || whole.dtype() != tensor.dtype()) return {};
            found = slot;
        }
        return found;
    }

  public:
    inline static thread_local Watch* current = nullptr;

    explicit Watch(const variable_list& given) : slots(given) {}
    ~Watch() { current = outer; }

    void add(const std::shared_ptr<Plan>& plan, const Tensors& operands, const at::Tensor& result) {
        Recipe::Call call{plan, {}};
        for (const at::Tensor* operand : operands) {
            const auto slot = find(*operand);
            if (!slot) return;  // so nobody will find the result either
            call.operands.push_back(*slot);
        }
        calls.push_back(std::move(call));
        slots.push_back(result);
    }

    // Null if a gradient lies elsewhere.
    std::shared_ptr<const Recipe> recipe(const variable_list& gradients) const {
        auto made = std::make_shared<Recipe>(Recipe{calls, {}});
        for (const at::Tensor& gradient : gradients) {
            made->gradients.emplace_back();
            if (!gradient.defined()) continue;
            const auto slot = find(gradient);
            if (!slot) return nullptr;
            made->gradients.back() = {*slot, gradient.sizes().vec(), gradient.strides().vec()};
        }
        return made;
    }
};

// Of the call's tensors, by Python. `given` are the result's gradient and the tensors that were kept, undefined if they were not.
variable_list gradients_by_python(Plan& plan, const variable_list& given, const std::vector<bool>& wanted) {
    const auto count = static_cast<Py_ssize_t>(wanted.size());
    THPObjectPtr grad(checked(THPVariable_Wrap(given[0]))), tensors(checked(PyTuple_New(count))), flags(checked(PyTuple_New(count)));
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyTuple_SET_ITEM(tensors.get(), i, checked(THPVariable_Wrap(given[i + 1])));  // None for an undefined one
        PyTuple_SET_ITEM(flags.get(), i, own(wanted[i] ? Py_True : Py_False));
    }
    THPObjectPtr answer(checked(PyObject_CallFunctionObjArgs(plan.backward.get(), grad.get(), tensors.get(), flags.get(), nullptr)));
    variable_list found(count);
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyObject* gradient = PyTuple_GET_ITEM(answer.get(), i);
        if (gradient != Py_None) found[i] = THPVariable_Unpack(gradient);
    }
    return found;
}

// Append what a backward depends on; false if it is not for us.
bool append_backward(Plan& plan, const variable_list& given, const std::vector<bool>& wanted, Key& key) {
    if (at::GradMode::is_enabled() || is_watched()) return false;
    key.insert(key.end(), wanted.begin(), wanted.end());
    for (const at::Tensor& tensor : given) {
        if (!tensor.defined()) {
            key.push_back('n');
        } else if (!append_tensor(tensor, key)) {
            return false;
        }
    }
    THPObjectPtr switches(checked(PyObject_CallNoArgs(plan.switches.get())));
    Tensors none;
    return append(switches.get(), key, none);
}

variable_list gradients(Plan& plan, const variable_list& given, const std::vector<bool>& wanted) {
    Key key;
    if (!append_backward(plan, given, wanted, key)) return gradients_by_python(plan, given, wanted);
    const auto known = plan.recipes.find(key);
    if (known != plan.recipes.end()) {
        const auto recipe = known->second;  // other threads may drop it meanwhile
        if (auto found = recipe->follow(given)) return std::move(*found);
    }
    const Watch watch(given);
    auto found = gradients_by_python(plan, given, wanted);
    if (auto recipe = watch.recipe(found)) {
        if (plan.recipes.size() >= RECIPES) plan.recipes.clear();
        plan.recipes.insert_or_assign(std::move(key), std::move(recipe));
    }
    return found;
}
