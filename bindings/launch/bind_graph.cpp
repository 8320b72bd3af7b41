// Graphs for Python: capture as a `with` block, launch, and updates with checked arguments.
#include "base/counted.h"
#include "base/errors.h"
#include "base/format.h"
#include "bindings/array/tensor_map_object.h"
#include "bindings/array/texture_object.h"
#include "bindings/launch/graph_object.h"
#include "bindings/launch/kernel_object.h"
#include "bindings/support/bindings.h"
#include "bindings/support/current.h"
#include "bindings/support/gil.h"
#include "bindings/support/launch_site.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "core/graph/capture.h"
#include "core/graph/graph.h"
#include "core/graph/graph_pool.h"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

/// Python's pool of graphs.
struct GraphPoolObject {
  std::shared_ptr<GraphPool> pool;
};

/// Python's graph. Dropping it may wait for launches; the GIL must not.
struct GraphObject {
  explicit GraphObject(Graph made) : graph(std::make_unique<Graph>(std::move(made))) {}
  GraphObject(const GraphObject&) = delete;
  GraphObject& operator=(const GraphObject&) = delete;
  ~GraphObject() {
    const GilRelease unlocked;
    graph.reset();
  }
  std::unique_ptr<Graph> graph;
};

/// A kernel of a graph, with the plan for converting its arguments.
struct GraphNodeObject {
  explicit GraphNodeObject(GraphNode value) : node(std::move(value)) {
    if (node.kernel) plan = std::make_shared<LaunchPlan>(*node.kernel);
  }
  GraphNode node;
  std::shared_ptr<LaunchPlan> plan;
};

/// graph.capture(stream): the object of a `with`.
struct CaptureScope {
  CaptureScope(py::object captured, Stream origin)
      : graph(std::move(captured)), stream(std::move(origin)) {}
  CaptureScope(CaptureScope&&) = default;
  ~CaptureScope() { drop_without_gil(stream); }
  py::object graph;
  Stream stream;
  bool is_entered = false;
};

std::vector<GraphNode> list_nodes(const GraphObject& self) {
  const GilRelease unlocked;
  return self.graph->nodes();
}

std::size_t node_count(const GraphObject& self) {
  const GilRelease unlocked;
  return self.graph->node_count();
}

bool is_capturing(const GraphObject& self) {
  const GilRelease unlocked;
  return self.graph->is_capturing();
}

py::list node_list(const GraphObject& self) {
  py::list list;
  for (GraphNode& node : list_nodes(self)) list.append(GraphNodeObject(std::move(node)));
  return list;
}

std::unique_ptr<GraphObject> make_graph(const py::object& device, const py::object& pool) {
  if (pool.is_none()) return std::make_unique<GraphObject>(Graph(device_argument(device)));
  if (!py::isinstance<GraphPoolObject>(pool)) {
    throw ArgumentError("Graph(pool=) wants a kw.GraphPool or None, got " + type_name(pool));
  }
  const std::shared_ptr<GraphPool>& shared = pool.cast<const GraphPoolObject&>().pool;
  if (!device.is_none() && &device_argument(device) != &shared->device()) {
    throw InvalidArgument(
        format("a graph on {} cannot use a pool of {}: make a pool for each device",
               device_argument(device).identify(), shared->device().identify()));
  }
  return std::make_unique<GraphObject>(Graph(shared));
}

py::object graph_pool(const GraphObject& self) {
  if (self.graph->pool() == nullptr) return py::none();
  return py::cast(Unlocked<GraphPoolObject>(new GraphPoolObject{self.graph->pool()}));
}

bool is_same_pool(const GraphPoolObject& self, const py::object& other) {
  return py::isinstance<GraphPoolObject>(other) &&
         other.cast<const GraphPoolObject&>().pool == self.pool;
}

CaptureScope make_scope(const py::object& self, const py::object& stream) {
  Device& device = self.cast<GraphObject&>().graph->device();
  Stream chosen = stream_argument(stream, device);
  if (!chosen && stream.is_none()) {
    chosen = current_stream(device);
    if (!chosen || chosen.handle() == nullptr) {
      chosen = without_gil([&] { return Stream::create(device); });
    }
  }
  return {self, std::move(chosen)};
}

Stream enter_capture(CaptureScope& scope) {
  {
    const GilRelease unlocked;
    scope.graph.cast<GraphObject&>().graph->begin_capture(scope.stream);
  }
  enter_stream(scope.stream);
  scope.is_entered = true;
  return scope.stream;
}

void leave_capture(CaptureScope& scope, const py::object& failure) {
  if (!scope.is_entered) {
    throw InvalidArgument("this capture is not open: it was ended before, or never entered");
  }
  Graph& graph = *scope.graph.cast<GraphObject&>().graph;
  leave_stream(scope.stream);
  scope.is_entered = false;
  const bool failed = !failure.is_none();
  const GilRelease unlocked;
  if (failed) {
    graph.discard_capture();
  } else {
    graph.end_capture();
  }
}

void launch_graph(const GraphObject& self, const py::object& stream) {
  Device& device = self.graph->device();
  Stream chosen = stream_argument(stream, device);
  if (!chosen) chosen = current_stream(device);
  const LaunchSite site = caller_site();
  const GilRelease unlocked;
  self.graph->launch(chosen, site);
}

GraphNodeObject node_argument(const GraphObject& self, const py::object& which) {
  if (py::isinstance<GraphNodeObject>(which)) return which.cast<const GraphNodeObject&>();
  if (PyBool_Check(which.ptr()) || !PyIndex_Check(which.ptr())) {
    throw ArgumentError(
        "update(node, *arguments) wants one of the graph's nodes or its index, got " +
        type_name(which));
  }
  const std::vector<GraphNode> nodes = list_nodes(self);
  const auto index = py::int_(which).cast<std::int64_t>();
  const auto count = static_cast<std::int64_t>(nodes.size());
  if (index < -count || index >= count) {
    throw InvalidArgument(format("the graph has no kernel {}: it has {}", index, count));
  }
  return GraphNodeObject(nodes[static_cast<std::size_t>(index < 0 ? index + count : index)]);
}

/// The bytes of all arguments, converted and checked as for a launch, and the objects behind them.
struct ConvertedArguments {
  std::vector<std::max_align_t> bytes;
  std::vector<void*> pointers;
  std::vector<std::shared_ptr<const void>> kept;
};

ConvertedArguments convert_arguments(const LaunchPlan& plan, Device& device, const Stream& stream,
                                     const py::args& arguments) {
  if (arguments.size() != plan.arguments.size()) {
    throw ArgumentError(format("{}: takes {}, {} {} given", plan.kernel.signature().to_string(),
                               counted(plan.arguments.size(), "argument"), arguments.size(),
                               arguments.size() == 1 ? "was" : "were"));
  }
  ConvertedArguments made;
  made.bytes.resize(plan.block_bytes / sizeof(std::max_align_t) + 1);
  LaunchFrame frame(plan.kernel, device, stream);
  for (const ArgumentPlan& argument : plan.arguments) {
    const py::object value = arguments[argument.index];
    if (py::isinstance<HostArgument>(value)) {
      frame.refuse(argument,
                   "got a host array: a graph does not copy host memory around a launch; "
                   "pass an array of the device");
    }
    auto* slot = reinterpret_cast<std::byte*>(made.bytes.data()) + argument.offset;
    made.pointers.push_back(slot);
    argument.convert(argument, value.ptr(), slot, frame);
    if (auto owner = find_owner(value)) made.kept.push_back(std::move(owner));
  }
  return made;
}

void update_node(const GraphObject& self, const py::object& which, const py::args& arguments) {
  if (is_capturing(self)) {
    throw CaptureError("update() of a graph during its capture: end the capture first",
                       CUDA_ERROR_ILLEGAL_STATE);
  }
  const GraphNodeObject target = node_argument(self, which);
  ConvertedArguments converted;
  Device& device = self.graph->device();
  if (target.plan != nullptr) {
    converted = convert_arguments(*target.plan, device, current_stream(device), arguments);
  }
  const GilRelease unlocked;
  self.graph->update(target.node, converted.pointers, std::move(converted.kept));
}

py::tuple dim_tuple(const Dim3& extents) { return py::make_tuple(extents.x, extents.y, extents.z); }

void bind_node(py::module_& m) {
  py::class_<GraphNodeObject, Unlocked<GraphNodeObject>>(m, "GraphNode")
      .def_property_readonly("index", [](const GraphNodeObject& n) { return n.node.index; })
      .def_property_readonly("name",
                             [](const GraphNodeObject& n) { return text_object(n.node.name); })
      .def_property_readonly("grid",
                             [](const GraphNodeObject& n) { return dim_tuple(n.node.grid); })
      .def_property_readonly("block",
                             [](const GraphNodeObject& n) { return dim_tuple(n.node.block); })
      .def_property_readonly("shared_bytes",
                             [](const GraphNodeObject& n) { return n.node.shared_bytes; })
      .def_property_readonly("signature",
                             [](const GraphNodeObject& n) -> py::object {
                               if (!n.node.kernel) return py::none();
                               return text_object(n.node.kernel->signature().to_string());
                             })
      .def("__repr__", [](const GraphNodeObject& n) {
        const Dim3 &g = n.node.grid, &b = n.node.block;
        return text_object(format("<GraphNode {}: {}[({}, {}, {}), ({}, {}, {})]>", n.node.index,
                                  n.node.name, g.x, g.y, g.z, b.x, b.y, b.z));
      });
}

void bind_pool(py::module_& m) {
  py::class_<GraphPoolObject, Unlocked<GraphPoolObject>>(m, "GraphPool")
      .def(py::init([](const py::object& device) {
             auto pool = std::make_shared<GraphPool>(device_argument(device));
             return Unlocked<GraphPoolObject>(new GraphPoolObject{std::move(pool)});
           }),
           py::kw_only(), py::arg("device") = py::none())
      .def_property_readonly(
          "device", [](const GraphPoolObject& p) { return DeviceObject{&p.pool->device()}; })
      .def("__eq__", &is_same_pool)
      .def("__hash__",
           [](const GraphPoolObject& p) { return std::hash<const void*>()(p.pool.get()); })
      .def("__repr__", [](const GraphPoolObject& p) {
        return format("<GraphPool on {}>", p.pool->device().label());
      });
}

}  // namespace

std::shared_ptr<const void> find_owner(const py::object& value) {
  if (const Array* array = find_array(value.ptr())) return array->owner();
  if (const TensorMapObject* map = find_tensor_map(value.ptr())) return map->array.owner();
  if (const auto* object = texture_or_surface(value.ptr())) return *object;
  if (value.is_none() || PyLong_Check(value.ptr()) || PyFloat_Check(value.ptr())) return nullptr;
  return keep_alive(value);  // an array of another library, or something cheap to keep
}

Graph find_graph(const py::object& value) {
  if (!py::isinstance<GraphObject>(value))
    throw ArgumentError("a graph is a kernwright.Graph, got " + type_name(value));
  return *value.cast<const GraphObject&>().graph;
}

void hold_in_capture(const Stream& stream, PyObject* const* arguments, std::size_t count) {
  const std::shared_ptr<Capture> capture = without_gil([&] { return find_capture(stream); });
  if (capture == nullptr) return;
  for (std::size_t i = 0; i < count; ++i) {
    if (const Array* array = find_array(arguments[i])) {
      array->hold_in(*capture, stream);
      continue;
    }
    capture->keep_alive(find_owner(py::reinterpret_borrow<py::object>(arguments[i])));
  }
}

void bind_graph(py::module_& m) {
  bind_node(m);
  bind_pool(m);
  py::class_<CaptureScope>(m, "_CaptureScope")
      .def("__enter__", &enter_capture)
      .def("__exit__", [](CaptureScope& scope, const py::object& type, const py::object&,
                          const py::object&) { leave_capture(scope, type); });
  py::class_<GraphObject>(m, "Graph")
      .def(py::init(&make_graph), py::kw_only(), py::arg("device") = py::none(),
           py::arg("pool") = py::none())
      .def_property_readonly("device",
                             [](const GraphObject& g) { return DeviceObject{&g.graph->device()}; })
      .def_property_readonly("pool", &graph_pool)
      .def_property_readonly("is_capturing", &is_capturing)
      .def_property_readonly("node_count", &node_count)
      .def_property_readonly("nodes", &node_list)
      .def("capture", &make_scope, py::arg("stream") = py::none())
      .def("launch", &launch_graph, py::arg("stream") = py::none())
      .def("update", &update_node)
      .def(
          "reset", [](const GraphObject& g) { g.graph->reset(); }, py::call_guard<GilRelease>())
      .def("__repr__", [](const GraphObject& g) {
        return format("<Graph of {} on {}>", counted(node_count(g), "node"),
                      g.graph->device().label());
      });
}

}  // namespace kernwright::python
