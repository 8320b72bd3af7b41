// Arrays put together and taken apart.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/movement/concat.h"
#include "kernels_src/movement/sequence.h"
#include "kernels_src/movement/triangle.h"

namespace kernwright::python {

namespace {

Array call_concat(const py::sequence& arrays, int axis) {
  std::vector<Array> parts;
  for (const py::handle each : arrays) parts.push_back(array_operand(each, "an array"));
  if (parts.empty()) return kernels::concat(parts, axis);
  return on_current_stream(
      parts.front(), [&](const Stream& stream) { return kernels::concat(parts, axis, stream); });
}

Array call_triangle(const py::object& x, std::int64_t k, bool upper) {
  const Array source = array_operand(x, "x");
  return on_current_stream(
      source, [&](const Stream& stream) { return kernels::triangle(source, k, upper, stream); });
}

Array call_diagonal_matrix(const py::object& values, std::int64_t rows, std::int64_t columns,
                           std::int64_t k) {
  const Array line = array_operand(values, "values");
  return on_current_stream(line, [&](const Stream& stream) {
    return kernels::diagonal_matrix(line, rows, columns, k, stream);
  });
}

Array call_diagonal(const py::object& x, std::int64_t k) {
  const Array source = array_operand(x, "x");
  return on_current_stream(
      source, [&](const Stream& stream) { return kernels::diagonal(source, k, stream); });
}

void call_sequence(const Array& to, double start, double step, std::optional<double> last) {
  on_current_stream(to,
                    [&](const Stream& on) { kernels::fill_sequence(to, start, step, last, on); });
}

void call_whole_sequence(const Array& to, std::int64_t start, std::int64_t step) {
  on_current_stream(to, [&](const Stream& on) { kernels::fill_sequence(to, start, step, on); });
}

}  // namespace

void bind_movement(py::module_& m) {
  m.def("_concat", &call_concat);
  m.def("_triangle", &call_triangle);
  m.def("_diagonal_matrix", &call_diagonal_matrix);
  m.def("_diagonal", &call_diagonal);
  m.def("_sequence", &call_sequence);
  m.def("_whole_sequence", &call_whole_sequence);
}

}  // namespace kernwright::python
