// Recordings of gradients: which node made each array that depends on chosen ones.
#pragma once

#include "bindings/calls/recorded_node.h"
#include "driver/driver_api.h"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// Where the elements of an array are: the first byte, and the one behind the last.
struct Extent {
  CUdeviceptr first = 0, end = 0;
  bool operator==(const Extent&) const = default;
};
Extent array_extent(const Array& array);

/// Memory that was written.
struct SeenWrite {
  const PyObject* target;  ///< the array it was written through, which recording.py keeps
  Extent extent;
  std::uint64_t order;
  bool traced;  ///< by what has a gradient
};

/// kernwright._core._GradientRecording. It knows arrays by identity, only while they live, and
/// holds none. One that looks through others (see touched() in recording.py) knows no array, and
/// holds those of the others that it was asked for.
struct Recording {
  PyObject_HEAD std::unordered_map<PyObject*, Place> places;
  std::vector<PyObject*> found;  ///< owned
  std::vector<SeenWrite> writes;
  PyObject* outer;  ///< a tuple of recordings, or null; owned
};

inline PyObject* base_object(Recording* recording) {
  return reinterpret_cast<PyObject*>(recording);
}
inline Recording* cast_recording(PyObject* object) { return reinterpret_cast<Recording*>(object); }

/// Whether it, or one that it looks through, knows the object.
bool knows(const Recording& recording, PyObject* object);

/// The object's place, or null.
const Place* find(Recording& recording, PyObject* object);

/// Whether the array may have been made before its memory was written through another one, and has
/// a gradient or got values that have: a gradient would not know where its values come from.
bool is_stale(Recording& recording, PyObject* array);

/// From here on the array is the next result of the node.
void set_place(Recording& recording, PyObject* array, const py::object& node);

/// From here on it does not know the object.
void forget(Recording& recording, PyObject* object);

/// A tuple of any iterable, and a member of it.
py::object tuple_from(PyObject* values);
inline PyObject* item(const py::object& tuple, Py_ssize_t number) {
  return PyTuple_GET_ITEM(tuple.ptr(), number);
}

/// A tuple of recordings. Throws TypeError where a member is none.
py::object recordings_from(PyObject* values);

/// A function in C for a table of methods.
template <typename Function>
PyCFunction plain_function(Function function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

void bind_recording(py::module_& m);

}  // namespace kernwright::python
