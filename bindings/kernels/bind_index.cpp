// Indexing by arrays.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/array_support.h"
#include "kernels_src/index/gather.h"
#include "kernels_src/index/positions.h"
#include "kernels_src/index/scatter.h"

#include <pybind11/stl.h>

namespace kernwright::python {

namespace {

kernels::IndexedAxes indexed_axes(std::vector<int> axes, const py::sequence& indices,
                                  int position) {
  kernels::IndexedAxes at{.axes = std::move(axes), .indices = {}, .position = position};
  for (const py::handle index : indices) at.indices.push_back(array_operand(index, "index"));
  return at;
}

kernels::Repeats make_repeats(bool unique) {
  return unique ? kernels::Repeats::never : kernels::Repeats::may_repeat;
}

Array call_take_at(const py::object& x, std::vector<int> axes, const py::sequence& indices,
                   int position) {
  const Array source = array_operand(x, "x");
  const auto at = indexed_axes(std::move(axes), indices, position);
  return on_current_stream(
      source, [&](const Stream& stream) { return kernels::take_at(source, at, stream); });
}

void call_put_at(const py::object& x, std::vector<int> axes, const py::sequence& indices,
                 int position, const py::object& values, bool unique) {
  const Array target = array_operand(x, "x");
  const Array given = array_operand(values, "values");
  const auto at = indexed_axes(std::move(axes), indices, position);
  on_current_stream(target, [&](const Stream& stream) {
    kernels::put_at(target, at, given.broadcast(at.result_shape(target)), make_repeats(unique),
                    stream);
  });
}

void call_add_at(const py::object& x, std::vector<int> axes, const py::sequence& indices,
                 int position, const py::object& values) {
  const Array target = array_operand(x, "x");
  const Array given = array_operand(values, "values");
  const auto at = indexed_axes(std::move(axes), indices, position);
  on_current_stream(target, [&](const Stream& stream) {
    kernels::add_at(target, at, given.broadcast(at.result_shape(target)), stream);
  });
}

Array call_gather(const py::object& x, int axis, const py::object& index) {
  const Array source = array_operand(x, "x");
  const Array positions = array_operand(index, "index");
  return on_current_stream(source, [&](const Stream& stream) {
    return kernels::gather(source, axis, positions, stream);
  });
}

void call_scatter(const py::object& x, int axis, const py::object& index, const py::object& values,
                  bool unique, bool add) {
  const Array target = array_operand(x, "x");
  const Array positions = array_operand(index, "index");
  const Array given = array_operand(values, "values");
  on_current_stream(target, [&](const Stream& stream) {
    if (add) {
      kernels::scatter_add(target, axis, positions, given, stream);
    } else {
      kernels::scatter(target, axis, positions, given, make_repeats(unique), stream);
    }
  });
}

void call_put_where(const py::object& x, const py::object& mask, const py::object& values) {
  const Array target = array_operand(x, "x");
  const Array where = array_operand(mask, "mask");
  const Array given = array_operand(values, "values");
  require_same_device({&target, &where, &given});
  on_current_stream(
      target, [&](const Stream& stream) { kernels::put_where(target, where, given, stream); });
}

std::int64_t call_count_outside(const py::object& index, std::int64_t extent) {
  const Array positions = array_operand(index, "index");
  return on_current_stream(positions, [&](const Stream& stream) {
    return kernels::count_outside(positions, extent, stream);
  });
}

Array call_true_positions(const py::object& mask) {
  const Array where = array_operand(mask, "mask");
  return on_current_stream(
      where, [&](const Stream& stream) { return kernels::true_positions(where, stream); });
}

Array call_split_positions(const py::object& positions, const py::object& shape) {
  const Array given = array_operand(positions, "positions");
  const Shape extents = shape_argument(shape);
  return on_current_stream(given, [&](const Stream& stream) {
    return kernels::split_positions(given, extents, stream);
  });
}

Array call_repeat_positions(const py::object& counts) {
  const Array given = array_operand(counts, "repeats");
  return on_current_stream(
      given, [&](const Stream& stream) { return kernels::repeat_positions(given, stream); });
}

}  // namespace

void bind_index(py::module_& m) {
  m.def("_take_at", &call_take_at);
  m.def("_put_at", &call_put_at);
  m.def("_add_at", &call_add_at);
  m.def("_gather", &call_gather);
  m.def("_scatter", &call_scatter);
  m.def("_put_where", &call_put_where);
  m.def("_count_outside", &call_count_outside);
  m.def("_true_positions", &call_true_positions);
  m.def("_split_positions", &call_split_positions);
  m.def("_repeat_positions", &call_repeat_positions);
}

}  // namespace kernwright::python
