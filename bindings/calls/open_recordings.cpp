// Notes of operations, one for each open recording.
#include "bindings/calls/open_recordings.h"

#include "base/errors.h"
#include "bindings/calls/recording.h"
#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// Those of this thread, the outermost first; owned.
thread_local std::vector<Recording*> open_recordings;

/// Throws where memory of an operand was written through another array.
void refuse_stale(Recording& recording, PyObject* name, PyObject* operand) {
  if (!is_stale(recording, operand)) return;
  py::handle(base_object(&recording))
      .attr("refuse_stale")(py::handle(name), py::make_tuple(py::handle(operand)));
}

/// An array of integers or bools carries no gradient.
bool is_constant(PyObject* result) {
  const Array* const array = find_array(result);
  return array != nullptr && !is_floating(array->type()) && !is_complex(array->type());
}

/// A new node made the results, unless it has no edges.
void add_node(Recording& recording, PyObject* name, std::vector<Edge> edges, PyObject* joint,
              PyObject* const* results, Py_ssize_t count) {
  if (edges.empty()) return;
  const py::object node = new_node(name, std::move(edges), joint);
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (results[i] == Py_None || is_constant(results[i])) {
      cast_node(node).outlines.emplace_back();
    } else {
      set_place(recording, results[i], node);
    }
  }
}

/// Pairs of an operand and its pullback, from any iterable.
py::object checked_pairs(PyObject* values) {
  py::object pairs = tuple_from(values);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(pairs.ptr()); ++i) {
    PyObject* const pair = item(pairs, i);
    if (PyTuple_Check(pair) == 0 || PyTuple_GET_SIZE(pair) != 2) {
      throw ArgumentError("a rule gives pairs of an operand and its pullback");
    }
  }
  return pairs;
}

void note_pairs(PyObject* name, PyObject* values, PyObject* result, bool is_checked) {
  if (open_recordings.empty()) return;
  const py::object pairs = checked_pairs(values);
  const Py_ssize_t count = PyTuple_GET_SIZE(pairs.ptr());
  for (std::size_t at = 0; at < open_recordings.size(); ++at) {
    Recording& recording = *open_recordings[at];
    std::vector<Edge> edges;
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* const pair = item(pairs, i);
      PyObject* const operand = PyTuple_GET_ITEM(pair, 0);
      if (!is_checked) refuse_stale(recording, name, operand);
      const Place* const place = find(recording, operand);
      if (place == nullptr) continue;
      edges.push_back({*place, py::reinterpret_borrow<py::object>(PyTuple_GET_ITEM(pair, 1))});
    }
    add_node(recording, name, std::move(edges), nullptr, &result, 1);
  }
}

/// A C function of Python with `count` arguments, none of them named.
template <typename Body>
PyObject* call_unnamed(Py_ssize_t given, Py_ssize_t count, Body&& body) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    if (given != count) throw py::type_error("another number of arguments is expected");
    body();
    Py_RETURN_NONE;
  });
}

PyObject* call_note(PyObject*, PyObject* const* given, Py_ssize_t count) {
  return call_unnamed(count, 3, [&] { note(given[0], given[1], given[2]); });
}

PyObject* call_note_checked(PyObject*, PyObject* const* given, Py_ssize_t count) {
  return call_unnamed(count, 3, [&] { note_pairs(given[0], given[1], given[2], true); });
}

PyObject* call_note_joint(PyObject*, PyObject* const* given, Py_ssize_t count) {
  return call_unnamed(count, 4, [&] { note_joint(given[0], given[1], given[2], given[3]); });
}

PyObject* call_is_traced(PyObject*, PyObject* value) {
  for (Recording* const each : open_recordings) {
    if (find(*each, value) != nullptr) Py_RETURN_TRUE;
  }
  Py_RETURN_FALSE;
}

PyObject* call_forget(PyObject*, PyObject* array) {
  for (std::size_t i = 0; i < open_recordings.size(); ++i) forget(*open_recordings[i], array);
  Py_RETURN_NONE;
}

PyObject* call_recordings(PyObject*, PyObject*) {
  PyObject* const tuple = PyTuple_New(static_cast<Py_ssize_t>(open_recordings.size()));
  for (std::size_t i = 0; tuple != nullptr && i < open_recordings.size(); ++i) {
    Py_INCREF(base_object(open_recordings[i]));
    PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), base_object(open_recordings[i]));
  }
  return tuple;
}

PyObject* call_set_recordings(PyObject*, PyObject* values) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    const py::object given = recordings_from(values);
    std::vector<Recording*> made;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(given.ptr()); ++i) {
      made.push_back(cast_recording(item(given, i)));
    }
    for (Recording* const each : made) Py_INCREF(base_object(each));
    made.swap(open_recordings);
    for (Recording* const each : made) Py_DECREF(base_object(each));
    Py_RETURN_NONE;
  });
}

PyObject* call_extent(PyObject*, PyObject* value) {
  return guarded<PyObject*>(nullptr, [&] {
    const Array* const array = find_array(value);
    if (array == nullptr) throw ArgumentError("only an array has an extent");
    const Extent extent = array_extent(*array);
    return Py_BuildValue("(KK)", extent.first, extent.end);
  });
}

PyObject* call_next_order(PyObject*, PyObject*) {
  return PyLong_FromUnsignedLongLong(next_order());
}

/// Whether it, or a member of a list or tuple, has a gradient or is stale. A list that contains
/// itself may.
bool concerns_recording(PyObject* value) {
  if (PyTuple_Check(value) == 0 && PyList_Check(value) == 0) {
    return std::ranges::any_of(open_recordings, [&](Recording* each) {
      return knows(*each, value) || is_stale(*each, value);
    });
  }
  if (Py_EnterRecursiveCall(" while a recording looks for arrays") != 0) {
    PyErr_Clear();
    return true;
  }
  PyObject* const* const members = PySequence_Fast_ITEMS(value);
  const bool found =
      std::any_of(members, members + PySequence_Fast_GET_SIZE(value), concerns_recording);
  Py_LeaveRecursiveCall();
  return found;
}

}  // namespace

bool concerns_recordings(PyObject* const* arguments, std::size_t count) {
  return !open_recordings.empty() && std::any_of(arguments, arguments + count, concerns_recording);
}

void note(PyObject* name, PyObject* pairs, PyObject* result) {
  note_pairs(name, pairs, result, false);
}

void note_joint(PyObject* name, PyObject* values, PyObject* made, PyObject* pullback) {
  if (open_recordings.empty()) return;
  const py::object operands = tuple_from(values), results = tuple_from(made);
  const Py_ssize_t count = PyTuple_GET_SIZE(operands.ptr());
  for (std::size_t at = 0; at < open_recordings.size(); ++at) {
    Recording& recording = *open_recordings[at];
    std::vector<Edge> edges;
    for (Py_ssize_t i = 0; i < count; ++i) {
      refuse_stale(recording, name, item(operands, i));
      const Place* const place = find(recording, item(operands, i));
      if (place != nullptr) edges.push_back({*place, py::int_(i)});
    }
    add_node(recording, name, std::move(edges), pullback, PySequence_Fast_ITEMS(results.ptr()),
             PyTuple_GET_SIZE(results.ptr()));
  }
}

void bind_open_recordings(py::module_& m) {
  static PyMethodDef functions[] = {
      {"_note", plain_function(&call_note), METH_FASTCALL, nullptr},
      {"_note_checked", plain_function(&call_note_checked), METH_FASTCALL, nullptr},
      {"_note_joint", plain_function(&call_note_joint), METH_FASTCALL, nullptr},
      {"_is_traced", call_is_traced, METH_O, nullptr},
      {"_forget", call_forget, METH_O, nullptr},
      {"_recordings", call_recordings, METH_NOARGS, nullptr},
      {"_set_recordings", call_set_recordings, METH_O, nullptr},
      {"_extent", call_extent, METH_O, nullptr},
      {"_next_order", call_next_order, METH_NOARGS, nullptr},
  };
  for (PyMethodDef& each : functions) {
    m.attr(each.ml_name) = py::reinterpret_steal<py::object>(PyCFunction_New(&each, nullptr));
  }
}

}  // namespace kernwright::python
