// Tables of matrix products, for measuring them.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
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

kernels::ProductKey key_of(const Array& a, const Array& b, const py::object& dtype,
                           std::string_view sums) {
  require_same_device({&a, &b});
  if (a.ndim() < 2 || b.ndim() < 2) throw InvalidArgument("a product is of two matrices");
  const auto named = kernels::product_sums_from_name(sums);
  if (!named) {
    throw InvalidArgument(
        format("sums of a product are plain, promoted, blocks or tf32, not '{}'", sums));
  }
  kernels::ProductKey key =
      kernels::product_key(a, b, dtype.is_none() ? a.type() : scalar_argument(dtype));
  key.sums = *named;
  return key;
}

/// Types, shape and bucket as tables name them; candidates.
py::tuple product_of(const Array& left, const Array& right, const py::object& dtype,
                     std::string_view sums) {
  const kernels::ProductKey key = key_of(left, right, dtype, sums);
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

py::object planned(const Array& left, const Array& right, const py::object& dtype,
                   std::string_view sums) {
  const auto plan = kernels::product_plan(left.device(), key_of(left, right, dtype, sums));
  return plan ? py::object(plan_row(*plan)) : py::none();
}

py::object with_product(const py::list& row, const py::function& work) {
  const kernels::ForcedProduct scope(plan_of_row(row));
  return work();
}

bool has_planned(const Array& left, const Array& right, const py::object& dtype,
                 std::string_view sums) {
  return kernels::has_product_plan(left.device(), key_of(left, right, dtype, sums));
}

}  // namespace

void bind_products(py::module_& m) {
  const auto def = [&](const char* name, auto* function) {
    m.def(name, function, py::arg("a"), py::arg("b"), py::arg("dtype") = py::none(),
          py::arg("sums") = "plain");
  };
  def("_product", &product_of);
  def("_has_product", &has_planned);
  def("_product_plan", &planned);
  m.def("_layer_operands", &layer_operands);
  m.def("_with_product", &with_product);
}

}  // namespace kernwright::python
