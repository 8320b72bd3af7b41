// Rotary embedding, its tables, ALiBi, PoPE, fused queries, keys and values.
#include "base/errors.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "bindings/support/python_support.h"
#include "bindings/values/dtype.h"
#include "kernels_src/rope/rope.h"

#include <string>
#include <utility>
#include <vector>

namespace kernwright::python {
namespace {

using kernels::CosSin;
using kernels::RopeOptions;
using kernels::RopeRule;

/// The Python functions' knowledge of a rule, in this order.
RopeRule make_rule(std::int64_t dim, double base, const std::string& scaling,
                   const std::vector<double>& numbers, std::optional<double> attention,
                   std::optional<Array> divisors = std::nullopt) {
  if (numbers.size() != 10) throw ArgumentError("a rule of rotary embeddings has ten numbers");
  RopeRule rule{.dim = dim, .base = base, .scaling = kernels::rope_scaling_from_name(scaling)};
  rule.factor = numbers[0];
  rule.original = numbers[1];
  rule.length = numbers[2];
  rule.low = numbers[3];
  rule.high = numbers[4];
  rule.beta_fast = numbers[5];
  rule.beta_slow = numbers[6];
  rule.truncate = numbers[7] != 0;
  rule.mscale = numbers[8];
  rule.mscale_all_dim = numbers[9];
  rule.attention = attention;
  rule.divisors = std::move(divisors);
  return rule;
}

/// As on_current_stream(), for a device with nothing on it yet.
template <typename Work>
auto on_device(const py::object& device, Work&& work) {
  Device& chosen = device_argument(device);
  const Stream stream = current_stream(chosen);
  const AllocationSiteScope scope(user_site());
  const GilRelease unlocked;
  return work(chosen, stream);
}

double attention_factor(std::int64_t dim, double base, const std::string& scaling,
                        const std::vector<double>& numbers, std::optional<double> attention) {
  return kernels::rope_attention_factor(make_rule(dim, base, scaling, numbers, attention));
}

Array frequencies(const py::object& device, std::int64_t dim, double base,
                  const std::string& scaling, const std::vector<double>& numbers,
                  py::handle divisors) {
  const RopeRule rule = make_rule(dim, base, scaling, numbers, std::nullopt,
                                  optional_operand(divisors, "the factors"));
  return on_device(device, [&](Device& on, const Stream& stream) {
    return kernels::rope_frequencies(on, rule, stream);
  });
}

py::tuple tables(const py::object& device, std::int64_t rows, std::int64_t first, std::int64_t dim,
                 double base, const std::string& scaling, const std::vector<double>& numbers,
                 std::optional<double> attention, py::handle divisors) {
  const RopeRule rule =
      make_rule(dim, base, scaling, numbers, attention, optional_operand(divisors, "the factors"));
  CosSin made = on_device(device, [&](Device& on, const Stream& stream) {
    return kernels::rope_tables(on, rule, rows, first, stream);
  });
  return py::make_tuple(std::move(made.cos), std::move(made.sin));
}

RopeOptions rope_options(py::handle positions, std::int64_t offset, bool heads_first) {
  RopeOptions options;
  options.positions = {optional_operand(positions, "positions"), offset};
  options.heads_first = heads_first;
  return options;
}

py::object rope(py::handle q, py::handle k, py::handle cos, py::handle sin, py::handle positions,
                std::int64_t offset, bool interleaved, bool heads_first, bool in_place,
                bool inverse, const std::optional<std::pair<py::object, py::object>>& out) {
  const Array query = array_operand(q, "q");
  const std::optional<Array> key = optional_operand(k, "k");
  const CosSin angles{array_operand(cos, "cos"), array_operand(sin, "sin")};
  RopeOptions options = rope_options(positions, offset, heads_first);
  options.interleaved = interleaved;
  options.in_place = in_place;
  options.inverse = inverse;
  if (out) {
    options.q_out = optional_operand(out->first, "out");
    options.k_out = optional_operand(out->second, "the out of k");
  }
  kernels::Rotated made = on_current_stream(
      query, [&](const Stream& on) { return kernels::rope(query, key, angles, options, on); });
  if (!made.k) return py::cast(std::move(made.q));
  return py::make_tuple(std::move(made.q), std::move(*made.k));
}

Array pope(py::handle x, py::handle cos, py::handle sin, py::handle shifts, py::handle grad,
           py::handle positions, std::int64_t offset, bool heads_first) {
  const Array operand = array_operand(x, "x");
  const CosSin angles{array_operand(cos, "cos"), array_operand(sin, "sin")};
  const std::optional<Array> turned = optional_operand(shifts, "shifts");
  const std::optional<Array> above = optional_operand(grad, "grad");
  const RopeOptions options = rope_options(positions, offset, heads_first);
  return on_current_stream(operand, [&](const Stream& on) {
    return kernels::pope(operand, angles, turned, above, options, on);
  });
}

Array pope_shifts(py::handle grad, py::handle x, py::handle cos, py::handle sin, py::handle shifts,
                  py::handle positions, std::int64_t offset, bool heads_first) {
  const Array operand = array_operand(x, "x");
  const CosSin angles{array_operand(cos, "cos"), array_operand(sin, "sin")};
  const Array turned = array_operand(shifts, "shifts"), above = array_operand(grad, "grad");
  const RopeOptions options = rope_options(positions, offset, heads_first);
  return on_current_stream(operand, [&](const Stream& on) {
    return kernels::pope_shifts(operand, angles, turned, above, options, on);
  });
}

Array scale_tokens(py::handle x, double floor_scale, double slope, py::handle positions,
                   std::int64_t offset, bool heads_first) {
  const Array operand = array_operand(x, "x");
  const RopeOptions options = rope_options(positions, offset, heads_first);
  return on_current_stream(operand, [&](const Stream& on) {
    return kernels::scale_tokens(operand, floor_scale, slope, options, on);
  });
}

Array alibi_slopes(const py::object& device, std::int64_t heads) {
  return on_device(device, [&](Device& on, const Stream& stream) {
    return kernels::alibi_slopes(on, heads, stream);
  });
}

Array alibi_bias(const py::object& device, std::int64_t heads, std::int64_t queries,
                 std::int64_t keys, const py::object& dtype) {
  const ScalarType type = dtype.is_none() ? ScalarType::float32 : scalar_argument(dtype);
  return on_device(device, [&](Device& on, const Stream& stream) {
    return kernels::alibi_bias(on, heads, queries, keys, type, stream);
  });
}

py::tuple split_qkv(py::handle qkv, std::int64_t heads, std::int64_t kv_heads, bool heads_first) {
  const Array operand = array_operand(qkv, "qkv");
  kernels::SplitHeads made = on_current_stream(operand, [&](const Stream& on) {
    return kernels::split_qkv(operand, heads, kv_heads, heads_first, on);
  });
  return py::make_tuple(std::move(made.q), std::move(made.k), std::move(made.v));
}

Array merge_qkv(py::handle q, py::handle k, py::handle v, bool heads_first) {
  const Array query = array_operand(q, "q"), key = array_operand(k, "k");
  const Array value = array_operand(v, "v");
  return on_current_stream(query, [&](const Stream& on) {
    return kernels::merge_qkv(query, key, value, heads_first, on);
  });
}

}  // namespace

void bind_rope(py::module_& m) {
  m.def("_rope_attention_factor", &attention_factor);
  m.def("_rope_frequencies", &frequencies);
  m.def("_rope_tables", &tables);
  m.def("_rope", &rope, py::arg("q"), py::arg("k"), py::arg("cos"), py::arg("sin"),
        py::arg("positions"), py::arg("offset"), py::arg("interleaved"), py::arg("heads_first"),
        py::arg("in_place"), py::arg("inverse"), py::arg("out") = py::none());
  m.def("_pope", &pope);
  m.def("_pope_shifts", &pope_shifts);
  m.def("_scale_tokens", &scale_tokens);
  m.def("_alibi_slopes", &alibi_slopes);
  m.def("_alibi_bias", &alibi_bias);
  m.def("_split_qkv", &split_qkv);
  m.def("_merge_qkv", &merge_qkv);
}

}  // namespace kernwright::python
