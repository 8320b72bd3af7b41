// Solvers and decompositions; kernwright.linalg names them.
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/linalg/decompose.h"
#include "kernels_src/linalg/solve.h"

namespace kernwright::python {
namespace {

py::object vectors_or_none(std::optional<Array>& array) {
  return array ? py::cast(std::move(*array)) : py::object(py::none());
}

py::tuple factored(const py::object& x) {
  const Array array = array_operand(x, "x");
  kernels::Lu made = on_current_stream(
      array, [&](const Stream& stream) { return kernels::lu_factor(array, stream); });
  return py::make_tuple(std::move(made.factors), std::move(made.pivots), std::move(made.info));
}

py::object solved(const py::object& factors, const py::object& pivots, const py::object& sides) {
  const kernels::Lu lu{array_operand(factors, "factors"), array_operand(pivots, "pivots"), {}};
  const Array right = array_operand(sides, "x2");
  require_same_device({&lu.factors, &lu.pivots, &right});
  return py::cast(on_current_stream(
      right, [&](const Stream& stream) { return kernels::lu_solve(lu, right, stream); }));
}

py::tuple lower_factor(const py::object& x) {
  const Array array = array_operand(x, "x");
  kernels::Cholesky made = on_current_stream(
      array, [&](const Stream& stream) { return kernels::cholesky(array, stream); });
  return py::make_tuple(std::move(made.lower), std::move(made.info));
}

py::tuple orthogonal_factor(const py::object& x, bool complete) {
  const Array array = array_operand(x, "x");
  kernels::Qr made = on_current_stream(
      array, [&](const Stream& stream) { return kernels::qr(array, complete, stream); });
  return py::make_tuple(std::move(made.q), std::move(made.r));
}

py::tuple singular(const py::object& x, bool vectors, bool full) {
  const Array array = array_operand(x, "x");
  kernels::Svd made = on_current_stream(
      array, [&](const Stream& stream) { return kernels::svd(array, vectors, full, stream); });
  return py::make_tuple(vectors_or_none(made.u), std::move(made.s), vectors_or_none(made.vh));
}

py::tuple eigen(const py::object& x, bool hermitian, bool vectors) {
  const Array array = array_operand(x, "x");
  kernels::Eigen made = on_current_stream(array, [&](const Stream& stream) {
    return hermitian ? kernels::eigh(array, vectors, stream) : kernels::eig(array, vectors, stream);
  });
  return py::make_tuple(std::move(made.values), vectors_or_none(made.vectors));
}

}  // namespace

void bind_linalg(py::module_& m) {
  m.def("_lu_factor", &factored);
  m.def("_lu_solve", &solved);
  m.def("_cholesky", &lower_factor);
  m.def("_qr", &orthogonal_factor);
  m.def("_svd", &singular);
  m.def("_eigen", &eigen);
}

}  // namespace kernwright::python
