// Launches hand these to a recording graph: the objects behind their arguments.
#pragma once

#include "core/graph/graph.h"
#include "core/stream.h"

#include <pybind11/pybind11.h>
#include <cstddef>
#include <memory>

namespace kernwright::python {

namespace py = pybind11;

/// The owner of an argument's memory; null for a number and for None.
std::shared_ptr<const void> find_owner(const py::object& value);

/// The graph of a kw.Graph. Throws ArgumentError for anything else.
Graph find_graph(const py::object& value);

/// A launch with these arguments was recorded on `stream`: the graph that captures it, if any,
/// keeps them. Call it while any_capture().
void hold_in_capture(const Stream& stream, PyObject* const* arguments, std::size_t count);

}  // namespace kernwright::python
