// Repeated calls without Python: the key of a call's arguments, its plan, allocations, launches.
//
// What plans.py and torch_ops/recorded.py do, for the calls that are made most: exact tensors, plain values, no `out`. Whatever
// is not of that kind is left to them, with nothing done. The key must tell apart all that key_of tells apart. Launches are the
// driver's (driver.h) or calls of Python functions, gradients are calls of Python functions or recipes (recipe.h).

#include "recorded.h"

#include <structmember.h>

#include <cstddef>
#include <memory>
#include <unordered_map>
#include <vector>

constexpr size_t ROOM = 4096;  // plans
constexpr int ASKED = 8;       // times at most that the plan of a dispatched call is looked for

struct Known {
    std::shared_ptr<Plan> plan;  // null for a dispatched call whose plan was not found yet
    int asked = 0;
};

struct Repeats {
    PyObject_HEAD
    std::unordered_map<Key, Known, Hash>* known;
    Py_ssize_t cleared;  // how often

    void clear() {
        std::unordered_map<Key, Known, Hash> dropped;  // at the end: what plans hold may call us when it goes
        known->swap(dropped);
        ++cleared;
    }

    Known& about(const Key& key) {
        if (known->size() >= ROOM && !known->count(key)) clear();
        return (*known)[key];
    }
};

// Which tensors to keep for the gradients of those that need one.
const std::vector<bool>& kept(Plan& plan, size_t count, uint64_t needed) {
    auto known = plan.saved.find(needed);
    if (known == plan.saved.end()) {
        THPObjectPtr flags(checked(PyTuple_New(static_cast<Py_ssize_t>(count))));
        for (size_t i = 0; i < count; ++i) PyTuple_SET_ITEM(flags.get(), i, own(needed >> i & 1 ? Py_True : Py_False));
        THPObjectPtr answer(checked(PyObject_CallOneArg(plan.saves.get(), flags.get())));
        std::vector<bool> found(count);
        for (size_t i = 0; i < count; ++i) found[i] = PyTuple_GET_ITEM(answer.get(), i) == Py_True;
        known = plan.saved.emplace(needed, std::move(found)).first;
    }
    return known->second;
}

// The call's result, whose gradients are recorded if tensors need them; null, with nothing done, if Python must do it.
PyObject* taken(std::shared_ptr<Plan> plan, const Tensors& tensors) {  // other threads may drop a plan while it is launched
    uint64_t needed = 0;  // a bit for each tensor
    for (size_t i = 0; at::GradMode::is_enabled() && i < tensors.size(); ++i) needed |= uint64_t(tensors[i]->requires_grad()) << i;
    if (needed && (!plan->backward || is_below_autograd())) return nullptr;
    driver::Addresses addresses;
    for (const at::Tensor* tensor : tensors) addresses.push_back(address_of(*tensor));
    const at::Tensor result = repeat(*plan, std::move(addresses));
    if (!result.defined()) return nullptr;
    if (needed) record(result, tensors, plan, kept(*plan, tensors.size(), needed));
    if (Watch::current) Watch::current->add(plan, tensors, result);
    return checked(THPVariable_Wrap(result));
}

// call(*values): the result of a repeated call, or NotImplemented.
PyObject* call(PyObject* object, PyObject* const* values, Py_ssize_t count) {
    HANDLE_TH_ERRORS
    const auto self = reinterpret_cast<Repeats*>(object);
    Key key;
    key.reserve(96);
    Tensors tensors;
    if (is_watched() || !append_all(values, count, key, tensors)) Py_RETURN_NOTIMPLEMENTED;
    const auto known = self->known->find(key);
    PyObject* result = known == self->known->end() || !known->second.plan ? nullptr : taken(known->second.plan, tensors);
    return result ? result : own(Py_NotImplemented);
    END_HANDLE_TH_ERRORS
}

// The plan of the function's call that means the same: describe(*args, **kwargs) are its values. Null if there is none, or if it
// has the tensors in another order. A tensor may be given twice: so each is told by an alias of its own.
std::shared_ptr<Plan> plan_of(Repeats* self, PyObject* describe, PyObject* const* values, Py_ssize_t count, PyObject* names) {
    std::vector<PyObject*> given(values, values + count + (names ? PyTuple_GET_SIZE(names) : 0));
    std::vector<THPObjectPtr> aliases;
    Tensors tensors, its;
    for (PyObject*& value : given) {
        if (!THPVariable_Check(value)) continue;
        aliases.emplace_back(checked(THPVariable_Wrap(THPVariable_Unpack(value).detach())));
        value = aliases.back().get();
        tensors.push_back(&THPVariable_Unpack(value));
    }
    THPObjectPtr described(PyObject_Vectorcall(describe, given.data(), count, names));
    if (!described && !PyErr_ExceptionMatches(PyExc_Exception)) throw python_error();  // KeyboardInterrupt
    if (!described) PyErr_Clear();                                                     // it is raised by the operator
    Key key;
    if (!described || !PyTuple_CheckExact(described.get())) return nullptr;
    const auto size = PyTuple_GET_SIZE(described.get());
    if (!append_all(&PyTuple_GET_ITEM(described.get(), 0), size, key, its) || its != tensors) return nullptr;
    const auto known = self->known->find(key);
    return known == self->known->end() ? nullptr : known->second.plan;
}

// The function that `dispatched` returns: (repeats, overload, switches, describe) and the overload's arguments.
PyObject* overload(PyObject* about, PyObject* const* values, Py_ssize_t count, PyObject* names) {
    HANDLE_TH_ERRORS
    const auto self = reinterpret_cast<Repeats*>(PyTuple_GET_ITEM(about, 0));
    PyObject* const otherwise = PyTuple_GET_ITEM(about, 1);
    Key key;
    key.reserve(128);
    key.insert(key.end(), {reinterpret_cast<int64_t>(otherwise), count});
    Tensors tensors;
    const Py_ssize_t all = count + (names ? PyTuple_GET_SIZE(names) : 0);
    THPObjectPtr switches(checked(PyObject_CallNoArgs(PyTuple_GET_ITEM(about, 2))));
    if (!is_watched() && append(switches.get(), key, tensors) &&
        (!names || append(names, key, tensors)) && append_all(values, all, key, tensors)) {
        std::shared_ptr<Plan> plan = self->about(key).plan;
        if (!plan && self->about(key).asked++ < ASKED) {
            plan = plan_of(self, PyTuple_GET_ITEM(about, 3), values, count, names);
            self->about(key).plan = plan;
        }
        PyObject* result = plan ? taken(plan, tensors) : nullptr;
        if (result) return result;
    }
    return PyObject_Vectorcall(otherwise, values, count, names);
    END_HANDLE_TH_ERRORS
}

template <class Function> PyCFunction cast(Function* function) {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// dispatched(overload, switches, describe): a function that takes an overload's arguments, and repeats known calls.
PyObject* dispatched(PyObject* object, PyObject* const* given, Py_ssize_t count) {
    static PyMethodDef definition{"overload", cast(overload), METH_FASTCALL | METH_KEYWORDS, nullptr};
    if (count != 3) return PyErr_Format(PyExc_TypeError, "dispatched takes 3 arguments, not %zd", count);
    THPObjectPtr about(PyTuple_Pack(4, object, given[0], given[1], given[2]));
    return about ? PyCFunction_New(&definition, about.get()) : nullptr;
}

// learn(values, makes, launches, result, backward, saves, switches): see native/__init__.py. False if such calls are not for here.
PyObject* learn(PyObject* object, PyObject* arguments) {
    HANDLE_TH_ERRORS
    const auto self = reinterpret_cast<Repeats*>(object);
    PyObject *values, *makes, *launches, *backward, *saves, *switches;
    auto plan = std::make_shared<Plan>();
    if (!PyArg_ParseTuple(arguments, "O!O!O!nOOO", &PyTuple_Type, &values, &PyTuple_Type, &makes, &PyTuple_Type, &launches,
                          &plan->result, &backward, &saves, &switches)) {
        return nullptr;
    }
    plan->backward = own_unless_none(backward), plan->saves = own_unless_none(saves);
    plan->switches = own_unless_none(switches);
    Key key;
    Tensors tensors;
    if (!append_all(&PyTuple_GET_ITEM(values, 0), PyTuple_GET_SIZE(values), key, tensors)) Py_RETURN_FALSE;
    if (tensors.empty() || plan->result < tensors.size()) Py_RETURN_FALSE;  // the latter: `out`
    plan->device = tensors[0]->device();
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(makes); ++i) plan->makes.push_back(make_of(PyTuple_GET_ITEM(makes, i), plan->device));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(launches); ++i) plan->launches.push_back(launch_of(PyTuple_GET_ITEM(launches, i)));
    if (plan->device.is_cuda()) {
        const c10::OptionalDeviceGuard on_device(plan->device);
        driver::Addresses alignments;
        for (const at::Tensor* tensor : tensors) alignments.push_back(address_of(*tensor) % ALIGNMENT);
        alignments.resize(tensors.size() + plan->makes.size());
        for (Launch& launch : plan->launches) learn_kernel(launch, alignments);
    }
    self->about(key).plan = std::move(plan);
    Py_RETURN_TRUE;
    END_HANDLE_TH_ERRORS
}

// counts(): the launches of all plans, and how many of them the driver repeats.
PyObject* counts(PyObject* object, PyObject*) {
    size_t all = 0, drivers = 0;
    for (const auto& [key, known] : *reinterpret_cast<Repeats*>(object)->known) {
        if (!known.plan) continue;
        for (const Launch& launch : known.plan->launches) ++all, drivers += launch.kernel != nullptr;
    }
    return Py_BuildValue("nn", all, drivers);
}

// clear(): forget all plans.
PyObject* clear(PyObject* object, PyObject*) {
    reinterpret_cast<Repeats*>(object)->clear();
    Py_RETURN_NONE;
}

PyObject* imported(const char* module, const char* name) {
    return checked(PyObject_GetAttrString(THPObjectPtr(checked(PyImport_ImportModule(module))).get(), name));
}

PyObject* new_repeats(PyTypeObject* type, PyObject*, PyObject*) {
    PyObject* object = type->tp_alloc(type, 0);
    if (object) reinterpret_cast<Repeats*>(object)->known = new std::unordered_map<Key, Known, Hash>();
    return object;
}

void delete_repeats(PyObject* object) {
    delete reinterpret_cast<Repeats*>(object)->known;
    Py_TYPE(object)->tp_free(object);
}

PyMethodDef methods[] = {
    {"call", cast(call), METH_FASTCALL, "The result, or NotImplemented."},
    {"clear", clear, METH_NOARGS, "Forget all plans."},
    {"counts", counts, METH_NOARGS, "(launches of all plans, those that the driver repeats)"},
    {"dispatched", cast(dispatched), METH_FASTCALL, "A function in place of an overload."},
    {"learn", learn, METH_VARARGS, "Keep a plan."},
    {nullptr, nullptr, 0, nullptr},
};
PyMemberDef members[] = {
    {"cleared", T_PYSSIZET, offsetof(Repeats, cleared), READONLY, "How often all plans were forgotten."},
    {nullptr, 0, 0, 0, nullptr},
};
PyTypeObject RepeatsType = {PyVarObject_HEAD_INIT(nullptr, 0)};
PyModuleDef module = {PyModuleDef_HEAD_INIT, "repeat", nullptr, -1, nullptr};

PyMODINIT_FUNC PyInit_repeat() {
    HANDLE_TH_ERRORS
    python = {imported("torch.nn", "Parameter"), imported("tritonkernels.switches", "now")};
    RepeatsType.tp_name = "repeat.Repeats";
    RepeatsType.tp_basicsize = sizeof(Repeats);
    RepeatsType.tp_flags = Py_TPFLAGS_DEFAULT;
    RepeatsType.tp_methods = methods;
    RepeatsType.tp_members = members;
    RepeatsType.tp_new = new_repeats;
    RepeatsType.tp_dealloc = delete_repeats;
    if (PyType_Ready(&RepeatsType) < 0) return nullptr;
    PyObject* created = PyModule_Create(&module);
    if (created) PyModule_AddObjectRef(created, "Repeats", reinterpret_cast<PyObject*>(&RepeatsType));
    return created;
    END_HANDLE_TH_ERRORS
}
