// Matrix products.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/products/matmul.h"

namespace kernwright::python {

void bind_matmul(py::module_& m) {
  m.def(
      "_matmul",
      [](const py::object& a, const py::object& b, const std::optional<std::string>& precision) {
        const Array left = array_operand(a, "x1"), right = array_operand(b, "x2");
        require_same_device({&left, &right});
        const bool tf32 = is_tf32(precision);
        return on_current_stream(
            left, [&](const Stream& stream) { return kernels::matmul(left, right, stream, tf32); });
      },
      py::arg("a"), py::arg("b"), py::arg("precision") = py::none());
  m.def("_diagonal_view", [](const Array& array, std::int64_t offset, int first, int second) {
    return array.diagonal(offset, first, second);
  });
}

}  // namespace kernwright::python
