// Python's functions of the recorder of accesses, in a traced build (trace_recorder.cpp).
#pragma once
#include <Python.h>

void bind_trace(PyObject* module);
