// Scans for Python: kernwright._core._scan, and methods of Array.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/kernels/reduction_calls.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/scan/scan.h"

namespace kernwright::python {
namespace {

/// Row by row as one axis, as NumPy's cumsum() has it without an axis.
Array as_one_axis(const Array& array) {
  if (array.ndim() == 1) return array;
  const Array whole =
      array.is_contiguous()
          ? array
          : on_current_stream(array, [&](const Stream& s) { return kernels::copy(array, s); });
  return whole.reshape({array.size()});
}

py::object run_scan(const Array& x, kernels::ScanCall call, const py::object& axis,
                    const py::object& out) {
  const auto axes = axes_argument(axis);
  if (axes && axes->size() != 1) {
    throw ArgumentError(
        format("{}() takes one axis, got {}", kernels::scan_name(call.op), short_repr(axis)));
  }
  const Array array = axes ? x : as_one_axis(x);
  if (axes) call.axis = axes->front();
  if (out.is_none()) {
    return py::cast(on_current_stream(
        array, [&](const Stream& stream) { return kernels::scan(array, call, stream); }));
  }
  const Array* const to = find_array(out.ptr());
  if (to == nullptr) {
    throw ArgumentError(format("out is {}, and must be a kernwright.Array", short_repr(out)));
  }
  require_same_device({&array, to});
  on_current_stream(array,
                    [&](const Stream& stream) { kernels::write_scan(*to, array, call, stream); });
  return out;
}

py::object scan_named(const std::string& name, const py::object& x, const py::object& axis,
                      const py::object& dtype, bool initial, const py::object& out) {
  const auto op = kernels::scan_from_name(name);
  if (!op) throw InvalidArgument(format("there is no scan \"{}\"", name));
  const Array array = array_operand(x, "x");
  if (axis.is_none() && array.ndim() != 1) {
    throw InvalidArgument(format("{}() of {}: name the axis", name, array.identify()));
  }
  return run_scan(array, {.op = *op, .initial = initial, .type = type_argument(dtype)}, axis, out);
}

}  // namespace

void bind_scan(py::module_& m) {
  m.def("_scan", &scan_named, py::arg("name"), py::arg("x"), py::arg("axis"),
        py::arg("dtype") = py::none(), py::arg("initial") = false, py::arg("out") = py::none());
  using kernels::Scan;
  for (const auto& [name, op] : {std::pair{"cumsum", Scan::sum}, {"cumprod", Scan::prod}}) {
    add_array_method(
        m, name,
        [op = op](const Array& x, const py::object& axis, const py::object& dtype,
                  const py::object& out) {
          return run_scan(x, {.op = op, .type = type_argument(dtype)}, axis, out);
        },
        py::arg("axis") = py::none(), py::arg("dtype") = py::none(), py::arg("out") = py::none());
  }
}

}  // namespace kernwright::python
