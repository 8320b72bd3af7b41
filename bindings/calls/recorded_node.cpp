// The Python type of nodes. Long chains of them are released without recursion.
#include "bindings/calls/recorded_node.h"

#include "bindings/support/bindings.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"

#include <structmember.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace kernwright::python {
namespace {

PyTypeObject* node_type = nullptr;  // set once, when the module is made

Node* cast_node(PyObject* self) { return reinterpret_cast<Node*>(self); }

/// Drops what the node holds, which may release any other object.
int clear_node(PyObject* self) {
  Node* const node = cast_node(self);
  std::exchange(node->edges, {}).clear();
  Py_CLEAR(node->joint);
  return 0;
}

void release_node(Node* node) {
  auto* const self = reinterpret_cast<PyObject*>(node);
  clear_node(self);
  Py_CLEAR(node->name);
  std::destroy_at(&node->edges);
  std::destroy_at(&node->outlines);
  PyTypeObject* const type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

/// A node releases the one before it, and so on through a whole step: those that come meanwhile
/// wait in a list instead of a frame of the stack each.
void destroy_node(PyObject* self) {
  static thread_local std::vector<Node*> waiting;
  static thread_local bool releases = false;
  PyObject_GC_UnTrack(self);
  waiting.push_back(cast_node(self));
  if (std::exchange(releases, true)) return;
  while (!waiting.empty()) {
    Node* const next = waiting.back();
    waiting.pop_back();
    release_node(next);
  }
  releases = false;
}

int visit_node(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  const Node* const node = cast_node(self);
  Py_VISIT(node->joint);
  for (const Edge& edge : node->edges) {
    Py_VISIT(edge.operand.node.ptr());
    Py_VISIT(edge.pull.ptr());
  }
  return 0;
}

PyObject* node_edges(PyObject* self, void*) {
  const std::vector<Edge>& all = cast_node(self)->edges;
  PyObject* const list = PyList_New(static_cast<Py_ssize_t>(all.size()));
  if (list == nullptr) return nullptr;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Place& operand = all[i].operand;
    PyObject* const edge =
        Py_BuildValue("(OnO)", operand.node.ptr(), operand.number, all[i].pull.ptr());
    if (edge == nullptr) {
      Py_DECREF(list);
      return nullptr;
    }
    PyList_SET_ITEM(list, static_cast<Py_ssize_t>(i), edge);
  }
  return list;
}

PyObject* count_results(PyObject* self, void*) {
  return PyLong_FromSize_t(cast_node(self)->outlines.size());
}

/// The result with that number; null, with an error set, where there is none.
const std::optional<Array>* node_result(PyObject* self, PyObject* number) {
  const auto& outlines = cast_node(self)->outlines;
  const std::size_t at = PyLong_AsSize_t(number);
  if (PyErr_Occurred() != nullptr) return nullptr;
  if (at < outlines.size()) return &outlines[at];
  PyErr_Format(PyExc_IndexError, "a node has no result %zu: it has %zu", at, outlines.size());
  return nullptr;
}

/// outline(number): an array of that result's shape, dtype and device without memory, or None.
PyObject* node_outline(PyObject* self, PyObject* number) {
  const std::optional<Array>* const found = node_result(self, number);
  if (found == nullptr) return nullptr;
  if (!*found) Py_RETURN_NONE;
  return guarded<PyObject*>(nullptr,
                            [&] { return new_array_object(Array(**found)).release().ptr(); });
}

/// fits(number, array): whether the array has the shape and the dtype of that result.
PyObject* fits_result(PyObject* self, PyObject* const* arguments, Py_ssize_t given) {
  if (given != 2) {
    PyErr_SetString(PyExc_TypeError, "fits() takes the number of a result, and an array");
    return nullptr;
  }
  const std::optional<Array>* const recorded = node_result(self, arguments[0]);
  if (recorded == nullptr) return nullptr;
  const Array* const other = find_array(arguments[1]);
  const bool same = *recorded && other != nullptr && (*recorded)->type() == other->type() &&
                    (*recorded)->shape() == other->shape();
  return PyBool_FromLong(same ? 1 : 0);
}

}  // namespace

std::uint64_t next_order() noexcept {
  static std::uint64_t last = 0;
  return ++last;
}

py::object new_node(PyObject* name, std::vector<Edge> edges, PyObject* joint) {
  Node* const node = PyObject_GC_New(Node, node_type);
  if (node == nullptr) throw py::error_already_set();
  Py_INCREF(name);
  Py_XINCREF(joint);
  node->name = name;
  node->joint = joint;
  node->order = next_order();
  std::construct_at(&node->edges, std::move(edges));
  std::construct_at(&node->outlines);
  auto* const object = reinterpret_cast<PyObject*>(node);
  PyObject_GC_Track(object);
  return py::reinterpret_steal<py::object>(object);
}

void bind_recorded_node(py::module_& m) {
  static PyMemberDef members[] = {
      {"name", T_OBJECT, offsetof(Node, name), READONLY, nullptr},
      {"joint", T_OBJECT, offsetof(Node, joint), READONLY, nullptr},
      {"order", T_ULONGLONG, offsetof(Node, order), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr},
  };
  static PyGetSetDef getters[] = {
      {"edges", node_edges, nullptr, nullptr, nullptr},
      {"size", count_results, nullptr, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr},
  };
  static PyMethodDef methods[] = {
      {"fits", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&fits_result)),
       METH_FASTCALL, nullptr},
      {"outline", node_outline, METH_O, nullptr},
      {nullptr, nullptr, 0, nullptr},
  };
  static PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(&destroy_node)},
      {Py_tp_traverse, reinterpret_cast<void*>(&visit_node)},
      {Py_tp_clear, reinterpret_cast<void*>(&clear_node)},
      {Py_tp_members, members},
      {Py_tp_getset, getters},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  static PyType_Spec spec = {
      "kernwright._core._Node", sizeof(Node), 0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  const auto type = py::reinterpret_steal<py::object>(PyType_FromSpec(&spec));
  if (!type) throw py::error_already_set();
  node_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  m.attr("_Node") = type;
}

}  // namespace kernwright::python
