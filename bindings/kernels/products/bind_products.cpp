// Tables of matrix products, for measuring them.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/products/product_choices.h"

#include <optional>
#include <string>
#include <vector>

namespace kernwright::python {
namespace {

/// ["fma", 128, 128, ...] as tables have it.
py::list plan_row(const kernels::ProductPlan& plan) {
  auto [kernel, numbers] = kernels::product_numbers(plan);
  numbers.resize(kernels::kMostProductNumbers);
  py::list row;
  row.append(py::str(kernel.data(), kernel.size()));
  for (const int number : numbers) row.append(number);
  return row;
}

kernels::ProductRow parse_product_row(const py::list& row) {
  if (row.empty()) return std::nullopt;
  std::vector<int> numbers;
  for (std::size_t i = 1; i < row.size(); ++i) numbers.push_back(row[i].cast<std::int16_t>());
  const auto known = kernels::product_row(row[0].cast<std::string>(), numbers);
  if (known) return *known;
  throw InvalidArgument("a plan of a product is the name of a kernel and at most 8 numbers");
}

kernels::ProductKey make_product_key(const Array& a, const Array& b, const py::object& dtype,
                                     std::string_view accumulation) {
  require_same_device({&a, &b});
  if (a.ndim() < 2 || b.ndim() < 2) throw InvalidArgument("a product is of two matrices");
  const auto named = kernels::product_accumulation_from_name(accumulation);
  if (!named) {
    throw InvalidArgument(format(
        "accumulation of a product is plain, promoted, blocks or tf32, not '{}'", accumulation));
  }
  kernels::ProductKey key =
      kernels::product_key(a, b, dtype.is_none() ? a.type() : scalar_argument(dtype));
  key.accumulation = *named;
  return key;
}

/// Types, shape and bucket as tables name them; candidates.
py::tuple call_product(const Array& left, const Array& right, const py::object& dtype,
                       std::string_view accumulation) {
  const kernels::ProductKey key = make_product_key(left, right, dtype, accumulation);
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
                   std::string_view accumulation) {
  const auto plan =
      kernels::tuned_product(left.device(), make_product_key(left, right, dtype, accumulation));
  return plan ? py::object(plan_row(*plan)) : py::none();
}

py::object call_forced_product(const py::list& row, const py::function& work) {
  const kernels::ForcedProduct scope(parse_product_row(row));
  return work();
}

bool has_planned(const Array& left, const Array& right, const py::object& dtype,
                 std::string_view accumulation) {
  return kernels::has_product_plan(left.device(),
                                   make_product_key(left, right, dtype, accumulation));
}

}  // namespace

void bind_products(py::module_& m) {
  const auto def = [&](const char* name, auto* function) {
    m.def(name, function, py::arg("a"), py::arg("b"), py::arg("dtype") = py::none(),
          py::arg("accumulation") = "plain");
  };
  def("_product", &call_product);
  def("_has_product", &has_planned);
  def("_product_plan", &planned);
  m.def("_layer_operands", &layer_operands);
  m.def("_with_product", &call_forced_product);
}

}  // namespace kernwright::python
