// Python's objects in C++: owned, and with Python's errors as exceptions.
#pragma once
#include <ATen/ATen.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/object_ptr.h>

PyObject* own(PyObject* object) {
    Py_INCREF(object);
    return object;
}

PyObject* checked(PyObject* object) {
    if (!object) throw python_error();
    return object;
}

