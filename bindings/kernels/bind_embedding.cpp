// Embedding, forward and backward.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/embedding/embedding.h"

namespace kernwright::python {
namespace {

Array embedding(py::handle ids, py::handle table, double scale, bool check) {
  const Array numbers = array_operand(ids, "ids"), rows = array_operand(table, "table");
  return on_current_stream(
      rows, [&](const Stream& on) { return kernels::embedding(numbers, rows, scale, check, on); });
}

Array embedding_backward(py::handle grad, py::handle ids, std::int64_t vocabulary,
                         std::optional<std::int64_t> padding, double scale) {
  const Array dy = array_operand(grad, "grad"), numbers = array_operand(ids, "ids");
  return on_current_stream(dy, [&](const Stream& on) {
    return kernels::embedding_backward(dy, numbers, vocabulary, padding, scale, on);
  });
}

}  // namespace

void bind_embedding(py::module_& m) {
  m.def("_embedding", &embedding);
  m.def("_embedding_backward", &embedding_backward);
}

}  // namespace kernwright::python
