// What a plan allocates and launches.
#pragma once
#include "driver.h"
#include "python.h"

#include <memory>
#include <vector>

// plans.Place: where a launch uses an address. `rest` are the other fields of an operand's struct, `build` a function of the address.
struct Place {
    size_t index;
    driver::Used used;
    THPObjectPtr rest, build;
};

struct Launch {
    THPObjectPtr function, arguments, keeps;  // arguments: a tuple, with anything at the stream's index and the places'
    size_t stream;
    bool is_pure;   // what the kernel gets is made of the arguments alone
    bool overlaps;  // it may begin while the kernel before it runs, for which it waits
    std::vector<Place> places;
    std::shared_ptr<const driver::Kernel> kernel;  // the same without Python, where that is known
};

struct Make {
    std::vector<int64_t> sizes, strides;
    at::TensorOptions options;
    THPObjectPtr function;  // instead, if it is not null
};

at::Tensor made(Make& make) {
    if (!make.function) {
        const pybind11::gil_scoped_release no_gil;  // as torch: an allocation may wait for the GPU, and that for Python
        return at::empty_strided(make.sizes, make.strides, make.options);
    }
    THPObjectPtr tensor(checked(PyObject_CallNoArgs(make.function.get())));
    return THPVariable_Unpack(tensor.get());
}

// A launch's argument: an address, a struct that begins with one, or what `build` makes of one.
PyObject* argument(Place& place, const driver::Addresses& addresses) {
    THPObjectPtr address(checked(PyLong_FromLongLong(addresses[place.used.slot] + place.used.offset)));
    if (place.build) return checked(PyObject_CallOneArg(place.build.get(), address.get()));
    if (!place.rest) return address.release();
    THPObjectPtr first(checked(PyTuple_Pack(1, address.get())));
    return checked(PySequence_Concat(first.get(), place.rest.get()));
}

void run_in_python(Launch& launch, const driver::Addresses& addresses, void* stream) {
    const auto count = static_cast<size_t>(PyTuple_GET_SIZE(launch.arguments.get()));
    std::vector<PyObject*> arguments(count);
    for (size_t i = 0; i < count; ++i) arguments[i] = PyTuple_GET_ITEM(launch.arguments.get(), i);
    std::vector<THPObjectPtr> owned;
    owned.reserve(launch.places.size() + 1);
    owned.emplace_back(checked(PyLong_FromVoidPtr(stream)));
    arguments[launch.stream] = owned.back().get();
    for (Place& place : launch.places) {
        owned.emplace_back(argument(place, addresses));
        arguments[place.index] = owned.back().get();
    }
    THPObjectPtr nothing(checked(PyObject_Vectorcall(launch.function.get(), arguments.data(), count, nullptr)));
}

void run(Launch& launch, const driver::Addresses& addresses, void* stream) {
    if (!launch.kernel || !driver::launch(*launch.kernel, addresses, stream)) run_in_python(launch, addresses, stream);
}

// The launch is learnt for calls on the current device whose addresses have these last bits.
void learn_kernel(Launch& launch, const driver::Addresses& alignments) {
    std::vector<driver::Used> uses;
    for (const Place& place : launch.places) uses.push_back(place.used);
    const auto launcher = [&](const driver::Addresses& addresses, void* stream) { run_in_python(launch, addresses, stream); };
    if (launch.is_pure) launch.kernel = driver::learnt(launcher, uses, alignments, launch.overlaps);
}

PyObject* own_unless_none(PyObject* object) { return object == Py_None ? nullptr : own(object); }

Launch launch_of(PyObject* given) {
    PyObject *function, *arguments, *keeps, *places;
    int is_pure, overlaps;
    Launch launch;
    if (!PyArg_ParseTuple(given, "OO!nOppO!", &function, &PyTuple_Type, &arguments, &launch.stream, &keeps, &is_pure, &overlaps,
                          &PyTuple_Type, &places)) {
        throw python_error();
    }
    launch.function = own(function), launch.arguments = own(arguments), launch.keeps = own(keeps), launch.is_pure = is_pure;
    launch.overlaps = overlaps;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(places); ++i) {
        PyObject *rest, *build;
        Place place;
        if (!PyArg_ParseTuple(PyTuple_GET_ITEM(places, i), "nnLOO", &place.index, &place.used.slot, &place.used.offset, &rest,
                              &build)) {
            throw python_error();
        }
        place.rest = own_unless_none(rest), place.build = own_unless_none(build);
        launch.places.push_back(std::move(place));
    }
    return launch;
}

// A tensor says what to allocate, on the device; else it is a function.
Make make_of(PyObject* given, at::Device device) {
    Make make;
    if (THPVariable_Check(given)) {
        const at::Tensor& like = THPVariable_Unpack(given);
        make.sizes = like.sizes().vec(), make.strides = like.strides().vec();
        make.options = at::TensorOptions().dtype(like.scalar_type()).device(device);
    } else {
        make.function = own(given);
    }
    return make;
}
