// Nodes of a recording of gradients: the operations that made arrays with gradients.
#pragma once

#include "array/array.h"

#include <pybind11/pybind11.h>

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright::python {

namespace py = pybind11;

/// A result of a node, without a reference to the array.
struct Place {
  py::object node;
  Py_ssize_t number = 0;
};

/// An operand with a gradient. `pull` is the function from the result's gradient to the operand's;
/// beside a joint pullback it is the position in what that one returns.
struct Edge {
  Place operand;
  py::object pull;
};

/// kernwright._core._Node: an operation, its edges to the nodes of its operands, and the outlines
/// (shape, dtype, device) of its results. It holds no array but those that its pullbacks hold.
struct Node {
  PyObject_HEAD PyObject* name;  ///< owned, as `joint`
  PyObject* joint;               ///< the pullback of all results at once, or null
  std::uint64_t order;
  std::vector<Edge> edges;
  std::vector<std::optional<Array>> outlines;  ///< nothing: a result that is None
};

inline Node& cast_node(const py::object& object) { return *reinterpret_cast<Node*>(object.ptr()); }

/// The number of a node or a write: later ones have larger numbers. Needs the GIL.
std::uint64_t next_order() noexcept;

/// A node without results so far. `joint` may be null.
py::object new_node(PyObject* name, std::vector<Edge> edges, PyObject* joint);

void bind_recorded_node(py::module_& m);

}  // namespace kernwright::python
