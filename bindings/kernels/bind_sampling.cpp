// Sampling for kernwright.nn.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/support/python_support.h"
#include "bindings/values/array_support.h"
#include "kernels_src/sampling/sampling.h"

namespace kernwright::python {
namespace {

/// A number, or a device array with one for each row.
template <typename Value>
kernels::PerRow<Value> per_row(const py::object& value, const char* name) {
  if (find_array(value.ptr()) == nullptr && !has_attribute(value, "__dlpack__"))
    return {value.cast<Value>(), std::nullopt};
  return {Value{}, array_operand(value, name)};
}

}  // namespace

void bind_sampling(py::module_& m) {
  m.def("_sample", [](const py::object& out, const py::object& logits,
                      const py::object& temperature, const py::object& top_k,
                      const py::object& top_p, const py::object& min_p, const py::object& penalty,
                      const py::object& previous, const py::object& seed, const py::object& step,
                      const py::object& counter) {
    const Array to = array_operand(out, "out");
    const Array from = array_operand(logits, "logits");
    kernels::SamplingOptions options;
    options.temperature = per_row<float>(temperature, "temperature");
    options.top_k = per_row<int>(top_k, "top_k");
    options.top_p = per_row<float>(top_p, "top_p");
    options.min_p = per_row<float>(min_p, "min_p");
    options.repetition_penalty = per_row<float>(penalty, "repetition_penalty");
    options.previous = optional_operand(previous, "previous");
    const auto seeds = per_row<std::uint64_t>(seed, "seed");
    const auto steps = per_row<std::uint64_t>(step, "step");
    options.seeds = seeds.each;
    options.steps = steps.each;
    options.state = {seeds.value, steps.value, optional_operand(counter, "counter")};
    std::vector<const Array*> all = {&from, &to};
    for (const auto* each :
         {&options.temperature.each, &options.top_k.each, &options.top_p.each, &options.min_p.each,
          &options.repetition_penalty.each, &options.previous, &options.seeds, &options.steps}) {
      if (*each) all.push_back(&**each);
    }
    require_same_device(all);
    on_current_stream(from,
                      [&](const Stream& on) { kernels::sample_tokens(to, from, options, on); });
  });
}

}  // namespace kernwright::python
