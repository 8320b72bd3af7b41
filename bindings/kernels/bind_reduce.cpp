// Reductions for Python: kernwright._core._reduce, and methods of Array.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/kernels/reduction_calls.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "kernels_src/reduce/reduce.h"

namespace kernwright::python {
namespace {

/// The result, or `out` after the result went there.
py::object run_reduction(const Array& array, const kernels::ReductionCall& call,
                         const py::object& out) {
  if (out.is_none()) {
    return py::cast(on_current_stream(
        array, [&](const Stream& stream) { return kernels::reduce(array, call, stream); }));
  }
  const Array* const to = find_array(out.ptr());
  if (to == nullptr) {
    throw ArgumentError(format("out is {}, and must be a kernwright.Array", short_repr(out)));
  }
  require_same_device({&array, to});
  on_current_stream(
      array, [&](const Stream& stream) { kernels::write_reduction(*to, array, call, stream); });
  return out;
}

py::object reduce_named(const std::string& name, const py::object& x, const py::object& axis,
                        bool keepdims, const py::object& dtype, double parameter,
                        const py::object& out) {
  const auto op = kernels::reduction_from_name(name);
  if (!op) throw InvalidArgument(format("there is no reduction \"{}\"", name));
  const kernels::ReductionCall call{.op = *op,
                                    .axes = axes_argument(axis),
                                    .keepdims = keepdims,
                                    .type = type_argument(dtype),
                                    .parameter = parameter};
  return run_reduction(array_operand(x, "x"), call, out);
}

/// Methods with NumPy's arguments.
void add_reduction_methods(py::module_& m) {
  using kernels::Reduction;
  const auto none = py::none();
  for (const auto& [name, op] :
       {std::pair{"sum", Reduction::sum}, {"prod", Reduction::prod}, {"mean", Reduction::mean}}) {
    add_array_method(
        m, name,
        [op = op](const Array& x, const py::object& axis, const py::object& dtype,
                  const py::object& out, bool keepdims) {
          return run_reduction(x, {op, axes_argument(axis), keepdims, type_argument(dtype)}, out);
        },
        py::arg("axis") = none, py::arg("dtype") = none, py::arg("out") = none,
        py::arg("keepdims") = false);
  }
  for (const auto& [name, op] : {std::pair{"max", Reduction::max},
                                 {"min", Reduction::min},
                                 {"any", Reduction::any},
                                 {"all", Reduction::all},
                                 {"argmax", Reduction::argmax},
                                 {"argmin", Reduction::argmin}}) {
    add_array_method(
        m, name,
        [op = op](const Array& x, const py::object& axis, const py::object& out, bool keepdims) {
          return run_reduction(x, {op, axes_argument(axis), keepdims, std::nullopt}, out);
        },
        py::arg("axis") = none, py::arg("out") = none, py::arg("keepdims") = false);
  }
  for (const auto& [name, op] : {std::pair{"var", Reduction::var}, {"std", Reduction::std}}) {
    add_array_method(
        m, name,
        [op = op](const Array& x, const py::object& axis, const py::object& dtype,
                  const py::object& out, double ddof, bool keepdims, double correction) {
          if (ddof != 0 && correction != 0) {
            throw ArgumentError(
                format("ddof={} and correction={} are one argument: give one", ddof, correction));
          }
          return run_reduction(
              x, {op, axes_argument(axis), keepdims, type_argument(dtype), ddof + correction}, out);
        },
        py::arg("axis") = none, py::arg("dtype") = none, py::arg("out") = none,
        py::arg("ddof") = 0.0, py::arg("keepdims") = false, py::kw_only(),
        py::arg("correction") = 0.0);
  }
}

}  // namespace

void bind_reduce(py::module_& m) {
  m.def("_reduce", &reduce_named, py::arg("name"), py::arg("x"), py::arg("axis"),
        py::arg("keepdims"), py::arg("dtype") = py::none(), py::arg("parameter") = 0.0,
        py::arg("out") = py::none());
  add_reduction_methods(m);
}

}  // namespace kernwright::python
