// The Python type of recordings; the class Array tells them which arrays died.
#include "bindings/calls/recording.h"

#include "array/shape.h"
#include "base/errors.h"
#include "base/scalar_type.h"
#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

namespace kernwright::python {
namespace {

PyTypeObject* recording_type = nullptr;  // set once, when the module is made
destructor destroy_plain_array = nullptr;

/// All recordings there are. Guarded by the GIL, as is what they know.
std::vector<Recording*> recordings;

Recording* outer_recording(const Recording& recording, Py_ssize_t number) {
  return cast_recording(PyTuple_GET_ITEM(recording.outer, number));
}

/// The class Array destroys its objects by this; another array may get the identity afterwards.
void destroy_array(PyObject* self) {
  for (std::size_t i = 0; i < recordings.size(); ++i) forget(*recordings[i], self);
  destroy_plain_array(self);
}

void clear_places(Recording& recording) {
  const auto dropped = std::exchange(recording.places, {});
}

int clear_recording(PyObject* self) {
  Recording& recording = *cast_recording(self);
  clear_places(recording);
  const auto found = std::exchange(recording.found, {});
  for (PyObject* const each : found) Py_DECREF(each);
  Py_CLEAR(recording.outer);
  return 0;
}

int visit_recording(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Recording& recording = *cast_recording(self);
  for (const auto& [_, place] : recording.places) Py_VISIT(place.node.ptr());
  for (PyObject* const each : recording.found) Py_VISIT(each);
  Py_VISIT(recording.outer);
  return 0;
}

PyObject* make_recording(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* const self = type->tp_alloc(type, 0);
  if (self == nullptr) return nullptr;
  Recording* const recording = cast_recording(self);
  std::construct_at(&recording->places);
  std::construct_at(&recording->found);
  std::construct_at(&recording->writes);
  recordings.push_back(recording);
  return self;
}

void destroy_recording(PyObject* self) {
  PyObject_GC_UnTrack(self);
  std::erase(recordings, cast_recording(self));
  clear_recording(self);
  std::destroy_at(&cast_recording(self)->places);
  std::destroy_at(&cast_recording(self)->found);
  std::destroy_at(&cast_recording(self)->writes);
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

/// enter(array, name): a node without operands made the array.
PyObject* enter_array(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 2) {
    PyErr_SetString(PyExc_TypeError, "enter() takes an array and a name");
    return nullptr;
  }
  return guarded<PyObject*>(nullptr, [&] {
    py::object node = new_node(arguments[1], {}, nullptr);
    set_place(*cast_recording(self), arguments[0], node);
    return node.release().ptr();
  });
}

/// place(array): its node, and its number among the node's results; or None.
PyObject* find_place(PyObject* self, PyObject* array) {
  const Place* const place = find(*cast_recording(self), array);
  if (place == nullptr) Py_RETURN_NONE;
  return Py_BuildValue("(On)", place->node.ptr(), place->number);
}

/// add_seen_write(target, first, end, order, traced): of equal targets and extents the last write
/// counts.
PyObject* add_seen_write(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
  if (count != 5) {
    PyErr_SetString(PyExc_TypeError, "add_seen_write() takes an array, three numbers and a bool");
    return nullptr;
  }
  const Extent extent{PyLong_AsUnsignedLongLong(arguments[1]),
                      PyLong_AsUnsignedLongLong(arguments[2])};
  const SeenWrite made{arguments[0], extent, PyLong_AsUnsignedLongLong(arguments[3]),
                       arguments[4] == Py_True};
  if (PyErr_Occurred() != nullptr) return nullptr;
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    std::vector<SeenWrite>& writes = cast_recording(self)->writes;
    std::erase_if(writes, [&](const SeenWrite& each) {
      return each.target == made.target && each.extent == made.extent;
    });
    writes.push_back(made);
    Py_RETURN_NONE;
  });
}

/// close(): it knows no array any longer.
PyObject* close_recording(PyObject* self, PyObject*) {
  clear_places(*cast_recording(self));
  Py_RETURN_NONE;
}

/// look_through(recordings): from here on it looks through those.
PyObject* look_through(PyObject* self, PyObject* values) {
  return guarded<PyObject*>(nullptr, [&]() -> PyObject* {
    Py_XSETREF(cast_recording(self)->outer, recordings_from(values).release().ptr());
    Py_RETURN_NONE;
  });
}

PyObject* found_arrays(PyObject* self, void*) {
  const std::vector<PyObject*>& found = cast_recording(self)->found;
  PyObject* const list = PyList_New(static_cast<Py_ssize_t>(found.size()));
  for (std::size_t i = 0; list != nullptr && i < found.size(); ++i) {
    Py_INCREF(found[i]);
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), found[i]);
  }
  return list;
}

}  // namespace

bool knows(const Recording& recording, PyObject* object) {
  if (recording.outer == nullptr) return recording.places.contains(object);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(recording.outer); ++i) {
    if (knows(*outer_recording(recording, i), object)) return true;
  }
  return false;
}

const Place* find(Recording& recording, PyObject* object) {
  if (recording.outer == nullptr) {
    const auto found = recording.places.find(object);
    return found == recording.places.end() ? nullptr : &found->second;
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(recording.outer); ++i) {
    if (find(*outer_recording(recording, i), object) == nullptr) continue;
    if (std::ranges::find(recording.found, object) == recording.found.end()) {
      Py_INCREF(object);
      recording.found.push_back(object);
    }
  }
  return nullptr;
}

Extent array_extent(const Array& array) {
  const ByteRange range = byte_range(array.shape(), array.strides(), scalar_size(array.type()));
  return {array.address() + static_cast<CUdeviceptr>(range.low),
          array.address() + static_cast<CUdeviceptr>(range.high)};
}

bool is_stale(Recording& recording, PyObject* object) {
  if (recording.writes.empty()) return false;
  const Array* const array = find_array(object);
  if (array == nullptr) return false;
  const Place* const place = find(recording, object);
  const std::uint64_t order = place == nullptr ? 0 : cast_node(place->node).order;
  const Extent bounds = array_extent(*array);
  return std::ranges::any_of(recording.writes, [&](const SeenWrite& write) {
    return (write.traced || place != nullptr) && write.order > order && write.target != object &&
           write.extent.first < bounds.end && bounds.first < write.extent.end;
  });
}

void forget(Recording& recording, PyObject* object) {
  const auto found = recording.places.find(object);
  if (found == recording.places.end()) return;
  const Place dropped =
      std::move(found->second);  // it may release arrays, which are forgotten, too
  recording.places.erase(found);
}

void set_place(Recording& recording, PyObject* object, const py::object& node) {
  const Array* const array = find_array(object);
  if (array == nullptr) throw ArgumentError("a recording has places of arrays alone");
  auto& outlines = cast_node(node).outlines;
  outlines.emplace_back(array->outline());
  Place made{node, static_cast<Py_ssize_t>(outlines.size()) - 1};
  const Place before = std::exchange(recording.places[object], std::move(made));
}

py::object tuple_from(PyObject* values) {
  auto made = py::reinterpret_steal<py::object>(PySequence_Tuple(values));
  if (!made) throw py::error_already_set();
  return made;
}

py::object recordings_from(PyObject* values) {
  py::object made = tuple_from(values);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(made.ptr()); ++i) {
    if (PyObject_TypeCheck(item(made, i), recording_type) == 0) {
      throw py::type_error("a recording is expected, got " + type_name(item(made, i)));
    }
  }
  return made;
}

void bind_recording(py::module_& m) {
  static PyGetSetDef getters[] = {
      {"found", found_arrays, nullptr, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  static PyMethodDef methods[] = {
      {"enter", plain_function(&enter_array), METH_FASTCALL, nullptr},
      {"place", find_place, METH_O, nullptr},
      {"add_seen_write", plain_function(&add_seen_write), METH_FASTCALL, nullptr},
      {"close", close_recording, METH_NOARGS, nullptr},
      {"look_through", look_through, METH_O, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(&make_recording)},
      {Py_tp_dealloc, reinterpret_cast<void*>(&destroy_recording)},
      {Py_tp_traverse, reinterpret_cast<void*>(&visit_recording)},
      {Py_tp_clear, reinterpret_cast<void*>(&clear_recording)},
      {Py_tp_getset, getters},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  static PyType_Spec spec = {"kernwright._core._GradientRecording", sizeof(Recording), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, slots};
  const auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  recording_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  m.attr("_GradientRecording") = type;

  auto* const array = reinterpret_cast<PyTypeObject*>(py::type::of<Array>().ptr());
  destroy_plain_array = std::exchange(array->tp_dealloc, &destroy_array);
}

}  // namespace kernwright::python
