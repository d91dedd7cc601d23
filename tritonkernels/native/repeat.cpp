// Repeated calls without Python: the key of a call's arguments, its plan, allocations, launches.
//
// What plans.py and torch_ops/recorded.py do, for the calls that are made most: exact tensors, plain values, no `out`. Whatever
// is not of that kind is left to them, by returning NotImplemented with nothing done. The key must tell apart all that key_of
// tells apart. Launches and gradients are calls of Python functions.

#include <ATen/ATen.h>
#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/autocast_mode.h>
#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/autograd/edge.h>
#include <torch/csrc/autograd/forward_grad.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/jit/frontend/tracer.h>
#include <torch/csrc/utils/object_ptr.h>

#include <cstring>
#include <memory>
#include <unordered_map>
#include <vector>

namespace {

constexpr int64_t ALIGNMENT = 16;  // plans.ALIGNMENT
constexpr size_t ROOM = 4096;      // plans

// plans.Place: where a launch uses an address. `rest` are the other fields of an operand's struct, `build` a function of the address.
struct Place {
    size_t index, slot;
    int64_t offset;
    THPObjectPtr rest, build;
};

struct Launch {
    THPObjectPtr function, arguments, keeps;  // arguments: a tuple, with anything at the stream's index and the places'
    size_t stream;
    std::vector<Place> places;
};

struct Make {
    std::vector<int64_t> sizes, strides;
    at::TensorOptions options;
    THPObjectPtr function;  // instead, if it is not null
};

struct Plan {
    at::Device device{at::kCPU};
    std::vector<Make> makes;
    std::vector<Launch> launches;
    size_t result;
    THPObjectPtr backward, saves;  // null for calls whose gradients are left to Python
    std::unordered_map<uint64_t, std::vector<bool>> saved;  // by the bits of which tensors need a gradient: which are kept
};

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

struct Repeats {
    PyObject_HEAD
    std::unordered_map<Key, std::shared_ptr<Plan>, Hash>* plans;
    PyObject* parameter;  // torch.nn.Parameter
};

// Whether torch wants to see operators: _is_watched of torch_ops/operator.py.
bool is_watched() {
    const auto included = c10::impl::tls_local_dispatch_key_set().included_;
    return c10::impl::TorchDispatchModeTLS::any_modes_set() || at::impl::torch_function_mode_enabled() ||
           included.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode) || included.has(c10::DispatchKey::Functionalize) ||
           at::autocast::is_autocast_enabled(at::kCPU) || at::autocast::is_autocast_enabled(at::kCUDA) ||
           torch::autograd::ForwardADLevel::try_get_by_idx(0) || torch::jit::tracer::isTracing() || at::hasCallbacks();
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

// Append an argument; false if its kind is unknown here.
bool append(const Repeats* self, PyObject* value, Key& key, Tensors& tensors) {
    const auto kind = reinterpret_cast<PyObject*>(Py_TYPE(value));
    if (value == Py_None) {
        key.push_back('n');
    } else if (kind == THPVariableClass || kind == self->parameter) {
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
        if (!text) PyErr_Clear();
        if (!text || !std::strcmp(text, "torch")) return false;  // that precision follows torch's switches
        key.insert(key.end(), {'s', size});
        key.insert(key.end(), text, text + size);
    } else if (THPDtype_Check(value)) {
        key.insert(key.end(), {'d', int64_t(reinterpret_cast<THPDtype*>(value)->scalar_type)});
    } else if (THPMemoryFormat_Check(value)) {
        key.insert(key.end(), {'m', int64_t(reinterpret_cast<THPMemoryFormat*>(value)->memory_format)});
    } else if (PyTuple_CheckExact(value)) {
        key.insert(key.end(), {'(', PyTuple_GET_SIZE(value)});
        for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); ++i) {
            if (!append(self, PyTuple_GET_ITEM(value, i), key, tensors)) return false;
        }
    } else {
        return false;
    }
    return true;
}

bool append_all(const Repeats* self, PyObject* const* values, Py_ssize_t count, Key& key, Tensors& tensors) {
    key.reserve(96);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!append(self, values[i], key, tensors)) return false;
    }
    return true;
}

PyObject* own(PyObject* object) {
    Py_INCREF(object);
    return object;
}

PyObject* checked(PyObject* object) {
    if (!object) throw python_error();
    return object;
}

at::Tensor made(Make& make) {
    if (!make.function) return at::empty_strided(make.sizes, make.strides, make.options);
    THPObjectPtr tensor(checked(PyObject_CallNoArgs(make.function.get())));
    return THPVariable_Unpack(tensor.get());
}

// A launch's argument: an address, a struct that begins with one, or what `build` makes of one.
PyObject* argument(Place& place, int64_t slot) {
    THPObjectPtr address(checked(PyLong_FromLongLong(slot + place.offset)));
    if (place.build) return checked(PyObject_CallOneArg(place.build.get(), address.get()));
    if (!place.rest) return address.release();
    THPObjectPtr first(checked(PyTuple_Pack(1, address.get())));
    return checked(PySequence_Concat(first.get(), place.rest.get()));
}

void run(Launch& launch, const std::vector<int64_t>& addresses, PyObject* stream) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(launch.arguments.get()));
    std::vector<PyObject*> arguments(count);
    for (size_t i = 0; i < count; ++i) arguments[i] = PyTuple_GET_ITEM(launch.arguments.get(), i);
    arguments[launch.stream] = stream;
    std::vector<THPObjectPtr> owned;
    owned.reserve(launch.places.size());
    for (Place& place : launch.places) {
        owned.emplace_back(argument(place, addresses[place.slot]));
        arguments[place.index] = owned.back().get();
    }
    THPObjectPtr nothing(checked(PyObject_Vectorcall(launch.function.get(), arguments.data(), count, nullptr)));
}

// The result of the call; NotImplemented, with nothing launched, if torch gave memory of another alignment than the plan has.
PyObject* repeat(Plan& plan, const Tensors& given) {
    const c10::OptionalDeviceGuard on_device(plan.device.is_cpu() ? std::nullopt : std::optional(plan.device));
    std::vector<int64_t> addresses;
    for (const at::Tensor* tensor : given) addresses.push_back(address_of(*tensor));
    std::vector<at::Tensor> tensors;
    for (Make& make : plan.makes) {
        tensors.push_back(made(make));
        addresses.push_back(address_of(tensors.back()));
        if (addresses.back() % ALIGNMENT) Py_RETURN_NOTIMPLEMENTED;
    }
    void* handle = nullptr;
    if (!plan.device.is_cpu()) handle = c10::impl::VirtualGuardImpl(plan.device.type()).getStream(plan.device).native_handle();
    THPObjectPtr stream(checked(PyLong_FromVoidPtr(handle)));
    for (Launch& launch : plan.launches) run(launch, addresses, stream.get());
    return THPVariable_Wrap(tensors[plan.result - given.size()]);
}

// The gradients of a call: backward(grad, tensors, wanted) of Python, with None for tensors that were not kept.
struct Backward : torch::autograd::Node {
    THPObjectPtr function;
    std::vector<torch::autograd::SavedVariable> saved;
    std::vector<bool> kept;

    torch::autograd::variable_list apply(torch::autograd::variable_list&& grads) override {
        torch::autograd::variable_list result(kept.size());
        if (!grads[0].defined()) return result;
        const pybind11::gil_scoped_acquire gil;
        const auto count = static_cast<Py_ssize_t>(kept.size());
        THPObjectPtr grad(checked(THPVariable_Wrap(grads[0]))), tensors(checked(PyTuple_New(count))), wanted(checked(PyTuple_New(count)));
        for (Py_ssize_t i = 0; i < count; ++i) {
            PyObject* tensor = kept[i] ? THPVariable_Wrap(saved[i].unpack(getptr())) : own(Py_None);
            PyTuple_SET_ITEM(tensors.get(), i, tensor);
            PyTuple_SET_ITEM(wanted.get(), i, own(task_should_compute_output(i) ? Py_True : Py_False));
        }
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
        for (auto& variable : saved) variable.reset_data();
    }

    ~Backward() override {
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

// Make the result of the call depend on those of its tensors that need a gradient.
void record(Plan& plan, const Tensors& given, uint64_t needed, PyObject* result) {
    auto known = plan.saved.find(needed);
    if (known == plan.saved.end()) {
        THPObjectPtr flags(checked(PyTuple_New(static_cast<Py_ssize_t>(given.size()))));
        for (size_t i = 0; i < given.size(); ++i) PyTuple_SET_ITEM(flags.get(), i, own(needed >> i & 1 ? Py_True : Py_False));
        THPObjectPtr answer(checked(PyObject_CallOneArg(plan.saves.get(), flags.get())));
        std::vector<bool> kept(given.size());
        for (size_t i = 0; i < given.size(); ++i) kept[i] = PyTuple_GET_ITEM(answer.get(), i) == Py_True;
        known = plan.saved.emplace(needed, std::move(kept)).first;
    }
    const auto node = new_node<Backward>();
    node->function = own(plan.backward.get());
    node->kept = known->second;
    node->saved.resize(given.size());
    torch::autograd::edge_list edges;
    for (size_t i = 0; i < given.size(); ++i) {
        edges.push_back(torch::autograd::impl::gradient_edge(*given[i]));
        if (node->kept[i]) node->saved[i] = torch::autograd::SavedVariable(*given[i], false);
    }
    node->set_next_edges(std::move(edges));
    torch::autograd::set_history(THPVariable_Unpack(result), node);
}

// call(*values): the result of a repeated call, or NotImplemented.
PyObject* call(PyObject* object, PyObject* const* values, Py_ssize_t count) {
    HANDLE_TH_ERRORS
    const auto self = reinterpret_cast<Repeats*>(object);
    Key key;
    Tensors tensors;
    if (is_watched() || !append_all(self, values, count, key, tensors)) Py_RETURN_NOTIMPLEMENTED;
    uint64_t needed = 0;  // a bit for each tensor
    for (size_t i = 0; at::GradMode::is_enabled() && i < tensors.size(); ++i) needed |= uint64_t(tensors[i]->requires_grad()) << i;
    const auto found = self->plans->find(key);
    if (found == self->plans->end() || (needed && !found->second->backward)) Py_RETURN_NOTIMPLEMENTED;
    const std::shared_ptr<Plan> plan = found->second;  // other threads may drop it while a launch lets them run
    THPObjectPtr result(repeat(*plan, tensors));
    if (needed && result.get() != Py_NotImplemented) record(*plan, tensors, needed, result.get());
    return result.release();
    END_HANDLE_TH_ERRORS
}

PyObject* own_unless_none(PyObject* object) { return object == Py_None ? nullptr : own(object); }

Launch launch_of(PyObject* given) {
    PyObject *function, *arguments, *keeps, *places;
    Launch launch;
    if (!PyArg_ParseTuple(given, "OO!nOO!", &function, &PyTuple_Type, &arguments, &launch.stream, &keeps, &PyTuple_Type, &places)) {
        throw python_error();
    }
    launch.function = own(function), launch.arguments = own(arguments), launch.keeps = own(keeps);
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); ++i) {
        PyObject *rest, *build;
        Place place;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(places, i), "nnLOO", &place.index, &place.slot, &place.offset, &rest, &build)) {
            throw python_error();
        }
        place.rest = own_unless_none(rest), place.build = own_unless_none(build);
        launch.places.push_back(std::move(place));
    }
    return launch;
}

Make make_of(PyObject* given) {
    Make make;
    if (THPVariable_Check(given)) {
        const at::Tensor& like = THPVariable_Unpack(given);
        make.sizes = like.sizes().vec(), make.strides = like.strides().vec();
        make.options = at::TensorOptions().dtype(like.scalar_type()).device(like.device());
    } else {
        make.function = own(given);
    }
    return make;
}

// learn(values, makes, launches, result, backward, saves): see native/__init__.py. False if such calls are not for here.
PyObject* learn(PyObject* object, PyObject* arguments) {
    HANDLE_TH_ERRORS
    const auto self = reinterpret_cast<Repeats*>(object);
    PyObject *values, *makes, *launches, *backward, *saves;
    auto plan = std::make_shared<Plan>();
    if (!PyArg_ParseTuple(arguments, "O!O!O!nOO", &PyTuple_Type, &values, &PyTuple_Type, &makes, &PyTuple_Type, &launches,
                          &plan->result, &backward, &saves)) {
        return nullptr;
    }
    plan->backward = own_unless_none(backward), plan->saves = own_unless_none(saves);
    Key key;
    Tensors tensors;
    if (!append_all(self, &PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values), key, tensors)) Py_RETURN_FALSE;
    if (tensors.empty() || plan->result < tensors.size()) Py_RETURN_FALSE;  // the latter: `out`
    plan->device = tensors[0]->device();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(makes); ++i) plan->makes.push_back(make_of(PyTuple_GET_ITEM(makes, i)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(launches); ++i) plan->launches.push_back(launch_of(PyTuple_GET_ITEM(launches, i)));
    if (self->plans->size() >= ROOM) self->plans->clear();
    self->plans->insert_or_assign(std::move(key), std::move(plan));
    Py_RETURN_TRUE;
    END_HANDLE_TH_ERRORS
}

PyObject* new_repeats(PyTypeObject* type, PyObject*, PyObject*) {
    THPObjectPtr nn(PyImport_ImportModule("torch.nn"));
    PyObject* parameter = nn ? PyObject_GetAttrString(nn, "Parameter") : nullptr;
    PyObject* object = parameter ? type->tp_alloc(type, 0) : nullptr;
    if (object) {
        reinterpret_cast<Repeats*>(object)->plans = new std::unordered_map<Key, std::shared_ptr<Plan>, Hash>();
        reinterpret_cast<Repeats*>(object)->parameter = parameter;
    }
    return object;
}

void delete_repeats(PyObject* object) {
    delete reinterpret_cast<Repeats*>(object)->plans;
    Py_DECREF(reinterpret_cast<Repeats*>(object)->parameter);
    Py_TYPE(object)->tp_free(object);
}

PyMethodDef methods[] = {
    {"call", reinterpret_cast<PyCFunction>(reinterpret_cast<void*>(call)), METH_FASTCALL, "The result, or NotImplemented."},
    {"learn", learn, METH_VARARGS, "Keep a plan."},
    {nullptr, nullptr, 0, nullptr},
};
PyTypeObject RepeatsType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "repeat", nullptr, -1, nullptr};

}  // namespace

PyMODINIT_FUNC PyInit_repeat() {
    RepeatsType.tp_name = "repeat.Repeats";
    RepeatsType.tp_basicsize = sizeof(Repeats);
    RepeatsType.tp_flags = Py_TPFLAGS_DEFAULT;
    RepeatsType.tp_methods = methods;
    RepeatsType.tp_new = new_repeats;
    RepeatsType.tp_dealloc = delete_repeats;
    if (PyType_Ready(&RepeatsType) < 0) return nullptr;
    PyObject* created = PyModule_Create(&module);
    if (created) PyModule_AddObjectRef(created, "Repeats", reinterpret_cast<PyObject*>(&RepeatsType));
    return created;
}
