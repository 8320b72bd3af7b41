// Tables of matrix products, for measuring them.
#include "base/errors.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/gemm/product_choices.h"

#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// ["fma", 128, 128, ...] as tables have it.
py::list plan_row(const kernels::ProductPlan& plan) {
  py::list row;
  row.append(kernels::product_kernel_name(plan.kernel));
  for (const int number : plan.numbers) row.append(number);
  return row;
}

kernels::ProductPlan plan_of_row(const py::list& row) {
  kernels::ProductPlan plan;
  if (row.empty()) return plan;
  const auto kernel = kernels::product_kernel_from_name(row[0].cast<std::string>());
  if (!kernel || row.size() > plan.numbers.size() + 1) {
    throw InvalidArgument("a plan of a product is the name of a kernel and at most 8 numbers");
  }
  plan.kernel = *kernel;
  for (std::size_t i = 1; i < row.size(); ++i) plan.numbers[i - 1] = row[i].cast<std::int16_t>();
  return plan;
}

kernels::ProductKey key_of(const Array& a, const Array& b) {
  require_same_device({&a, &b});
  if (a.ndim() < 2 || b.ndim() < 2) throw InvalidArgument("a product is of two matrices");
  return kernels::product_key(a, b, a.type());
}

/// Types, shape and bucket as tables name them; candidates.
py::tuple product_of(const Array& left, const Array& right) {
  const kernels::ProductKey key = key_of(left, right);
  py::list plans;
  for (const auto& plan : kernels::product_candidates(left.device(), key)) {
    plans.append(plan_row(plan));
  }
  return py::make_tuple(kernels::product_types(key), kernels::product_shape(key),
                        kernels::product_bucket(key), plans);
}

/// x @ weight^T as a product of matrices.
py::tuple layer_operands(py::handle x, py::handle weight) {
  Array left = array_operand(x, "x");
  const Array right = array_operand(weight, "weight");
  if (left.ndim() == 1) left = left.reshape({1, left.size()});
  return py::make_tuple(left, right.transpose());
}

py::object planned(const Array& left, const Array& right) {
  const auto plan = kernels::product_plan(left.device(), key_of(left, right));
  return plan ? py::object(plan_row(*plan)) : py::none();
}

py::object with_product(const py::list& row, const py::function& work) {
  const kernels::ForcedProduct scope(plan_of_row(row));
  return work();
}

}  // namespace

void bind_products(py::module_& m) {
  m.def("_product", &product_of);
  m.def("_has_product", [](const Array& left, const Array& right) {
    return kernels::has_product_plan(left.device(), key_of(left, right));
  });
  m.def("_layer_operands", &layer_operands);
  m.def("_product_plan", &planned);
  m.def("_with_product", &with_product);
}

}  // namespace kernwright::python
