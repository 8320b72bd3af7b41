// Random numbers for kernwright.random.
#include "base/errors.h"
#include "base/format.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/values/dtype.h"
#include "kernels_src/random/choice.h"
#include "kernels_src/random/distributions.h"
#include "kernels_src/random/parametric.h"
#include "kernels_src/random/permutation.h"

namespace kernwright::python {
namespace {

kernels::RandomState make_random_state(std::uint64_t seed, std::uint64_t offset,
                                       const py::object& counter) {
  return {seed, offset, optional_operand(counter, "counter")};
}

using RandomFill = void (*)(const Array&, double, double, const kernels::RandomState&,
                            const Stream&);

/// A fill of two reals as a function of the module.
void bind_random_fill(py::module_& m, const char* name, RandomFill fill) {
  m.def(name, [fill](const py::object& out, double a, double b, std::uint64_t seed,
                     std::uint64_t offset, const py::object& counter) {
    const Array array = array_operand(out, "out");
    const kernels::RandomState state = make_random_state(seed, offset, counter);
    on_current_stream(array, [&](const Stream& on) { fill(array, a, b, state, on); });
  });
}

kernels::RandomParameter random_parameter(const py::handle& value) {
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  return array_operand(value, "a parameter");
}

void bind_random_parametric(py::module_& m) {
  m.def("_random_parametric", [](const py::object& out, const std::string& kind,
                                 const py::sequence& parameters, std::uint64_t seed,
                                 std::uint64_t offset, const py::object& counter) {
    const Array array = array_operand(out, "out");
    std::vector<kernels::RandomParameter> values;
    for (const py::handle each : parameters) values.push_back(random_parameter(each));
    const kernels::RandomState state = make_random_state(seed, offset, counter);
    on_current_stream(
        array, [&](const Stream& on) { kernels::fill_parametric(array, kind, values, state, on); });
  });
  m.def("_random_multinomial",
        [](const py::object& out, const py::object& chances, const py::object& trials,
           std::uint64_t seed, std::uint64_t offset, const py::object& counter) {
          const Array array = array_operand(out, "out");
          const Array weights = array_operand(chances, "pvals");
          const kernels::RandomParameter count = random_parameter(trials);
          const kernels::RandomState state = make_random_state(seed, offset, counter);
          on_current_stream(array, [&](const Stream& on) {
            kernels::fill_multinomial(array, weights, count, state, on);
          });
        });
}

void bind_random_orders(py::module_& m) {
  m.def("_random_permutation",
        [](std::int64_t n, std::int64_t count, const py::object& dtype, std::uint64_t seed,
           std::uint64_t offset, const py::object& counter, const py::object& device) {
          const kernels::RandomState state = make_random_state(seed, offset, counter);
          Device& chosen = state.counter ? state.counter->device() : device_argument(device);
          const ScalarType type = scalar_argument(dtype);
          const Stream stream = current_stream(chosen);
          const AllocationSiteScope scope(user_site());
          const GilRelease unlocked;
          return kernels::permutation(chosen, n, count, type, state, stream);
        });
  m.def("_random_choice", [](const py::object& weights, std::int64_t count, bool replace,
                             std::uint64_t seed, std::uint64_t offset, const py::object& counter) {
    const Array array = array_operand(weights, "p");
    const kernels::RandomState state = make_random_state(seed, offset, counter);
    return on_current_stream(array, [&](const Stream& on) {
      return replace ? kernels::choose_repeatedly(array, count, state, on)
                     : kernels::choose_without_replacement(array, count, state, on);
    });
  });
  m.def("_rows_by_index", [](const py::object& array, const py::object& index) {
    const Array from = array_operand(array, "x");
    const Array places = array_operand(index, "index");
    return on_current_stream(
        from, [&](const Stream& on) { return kernels::rows_by_index(from, places, on); });
  });
}

}  // namespace

void bind_random(py::module_& m) {
  bind_random_fill(m, "_random_uniform", &kernels::fill_uniform);
  bind_random_fill(m, "_random_normal", &kernels::fill_normal);
  bind_random_fill(m, "_random_gamma", &kernels::fill_gamma);
  bind_random_fill(m, "_random_exponential",
                   [](const Array& out, double mean, double, const kernels::RandomState& state,
                      const Stream& on) { kernels::fill_exponential(out, mean, state, on); });
  bind_random_fill(m, "_random_bernoulli",
                   [](const Array& out, double p, double, const kernels::RandomState& state,
                      const Stream& on) { kernels::fill_bernoulli(out, p, state, on); });
  m.def(
      "_random_integers", [](const py::object& out, std::uint64_t low, std::uint64_t range,
                             std::uint64_t seed, std::uint64_t offset, const py::object& counter) {
        const Array array = array_operand(out, "out");
        const kernels::RandomState state = make_random_state(seed, offset, counter);
        on_current_stream(
            array, [&](const Stream& on) { kernels::fill_integers(array, low, range, state, on); });
      });
  m.def("_advance_counter", [](const py::object& counter, std::uint64_t by) {
    const Array array = array_operand(counter, "counter");
    on_current_stream(array, [&](const Stream& on) { kernels::advance_counter(array, by, on); });
  });
  m.def("_take_counter", [](const py::object& counter, std::uint64_t by) {
    const Array array = array_operand(counter, "counter");
    return on_current_stream(
        array, [&](const Stream& on) { return kernels::take_counter(array, by, on); });
  });
  bind_random_parametric(m);
  bind_random_orders(m);
}

}  // namespace kernwright::python
