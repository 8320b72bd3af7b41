// Attention over arrays and over caches.
#include "base/errors.h"
#include "bindings/kernels/bind_kernels.h"
#include "bindings/kernels/kernel_calls.h"
#include "kernels_src/attention/attention.h"
#include "kernels_src/attention/attention_backward.h"
#include "kernels_src/attention/float8_attention.h"
#include "kernels_src/attention/hopper_attention.h"
#include "kernels_src/attention/hopper_backward.h"
#include "kernels_src/plans/plan_scope.h"

#include <string>
#include <tuple>
#include <vector>

namespace kernwright::python {
namespace {

using kernels::AttentionOptions;

/// The optional arrays of the Python functions, in their order.
void read_attention_arrays(AttentionOptions& options, const std::vector<py::object>& arrays) {
  struct Named {
    const char* name;
    std::optional<Array> AttentionOptions::*member;
  };
  static constexpr Named kArrays[] = {
      {"attn_mask", &AttentionOptions::mask},      {"sinks", &AttentionOptions::sinks},
      {"alibi", &AttentionOptions::slopes},        {"query_lengths", &AttentionOptions::q_lengths},
      {"lengths", &AttentionOptions::k_lengths},   {"query_starts", &AttentionOptions::q_starts},
      {"key_starts", &AttentionOptions::k_starts}, {"page_table", &AttentionOptions::page_table},
      {"key_scale", &AttentionOptions::k_scales},  {"value_scale", &AttentionOptions::v_scales},
  };
  if (arrays.size() != std::size(kArrays)) throw ArgumentError("attention has ten more arrays");
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    options.*kArrays[i].member = optional_operand(arrays[i], kArrays[i].name);
  }
}

/// Arrays for the result and its logarithms, and the axes in front of the result's elements where
/// they are not those of the queries.
using AttentionTargets = std::tuple<py::object, py::object, std::optional<Shape>>;

void read_attention_targets(AttentionOptions& options, const std::optional<AttentionTargets>& out) {
  if (!out) return;
  const auto& [result, logarithms, rows] = *out;
  options.out = optional_operand(result, "out");
  options.lse_out = optional_operand(logarithms, "the out of logarithms");
  options.rows = rows;
}

py::tuple attention(bool decode, py::handle query, py::handle key, py::handle value,
                    const std::vector<py::object>& arrays, std::optional<double> scale,
                    double soft_cap, std::int64_t left, std::int64_t right, bool bottom,
                    bool wants_lse, double dropout, std::uint64_t seed, std::uint64_t offset,
                    std::int64_t splits, std::int64_t most_queries,
                    const std::optional<AttentionTargets>& out) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key");
  const Array v = array_operand(value, "value");
  AttentionOptions options{.scale = scale, .soft_cap = soft_cap, .left = left, .right = right};
  options.bottom = bottom;
  options.wants_lse = wants_lse;
  options.dropout = dropout;
  options.seed = seed;
  options.offset = offset;
  options.splits = splits;
  options.most_queries = most_queries;
  read_attention_targets(options, out);
  read_attention_arrays(options, arrays);
  kernels::Attended made = on_current_stream(q, [&](const Stream& on) {
    return decode ? kernels::decode_attention(q, k, v, options, on)
                  : kernels::attention(q, k, v, options, on);
  });
  return py::make_tuple(std::move(made.out), std::move(made.lse));
}

py::tuple paged_attention(py::handle query, py::handle key, py::handle value,
                          const std::vector<py::object>& arrays, std::optional<double> scale,
                          double soft_cap, std::int64_t left, std::int64_t right, bool wants_lse,
                          std::int64_t most_queries, const std::optional<AttentionTargets>& out) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key_cache");
  const Array v = array_operand(value, "value_cache");
  AttentionOptions options{.scale = scale, .soft_cap = soft_cap, .left = left, .right = right};
  options.wants_lse = wants_lse;
  options.most_queries = most_queries;
  read_attention_targets(options, out);
  read_attention_arrays(options, arrays);
  kernels::Attended made = on_current_stream(
      q, [&](const Stream& on) { return kernels::paged_attention(q, k, v, options, on); });
  return py::make_tuple(std::move(made.out), std::move(made.lse));
}

/// None where operands have to be widened. `scales`: of query, key and value; `scores` and `values`
/// are numbers for all heads.
py::object float8_attention(py::handle query, py::handle key, py::handle value,
                            const std::vector<py::object>& arrays, std::optional<double> scale,
                            double soft_cap, std::int64_t left, std::int64_t right, bool wants_lse,
                            std::int64_t most_queries, const std::vector<py::object>& scales,
                            double scores, double values, bool fast_sums,
                            const std::optional<AttentionTargets>& out) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key");
  const Array v = array_operand(value, "value");
  AttentionOptions options{.scale = scale, .soft_cap = soft_cap, .left = left, .right = right};
  options.wants_lse = wants_lse;
  options.most_queries = most_queries;
  read_attention_targets(options, out);
  read_attention_arrays(options, arrays);
  if (scales.size() != 3) throw ArgumentError("float8 attention has three scales");
  const kernels::OperandScales of{.query = optional_operand(scales[0], "query_scale"),
                                  .key = optional_operand(scales[1], "key_scale"),
                                  .value = optional_operand(scales[2], "value_scale"),
                                  .scores = scores,
                                  .values = values};
  auto made = on_current_stream(q, [&](const Stream& on) {
    return kernels::float8_attention(q, k, v, options, of, fast_sums, on);
  });
  if (!made) return py::none();
  return py::make_tuple(std::move(made->out), std::move(made->lse));
}

py::tuple attention_backward(py::handle grad, py::handle query, py::handle key, py::handle value,
                             py::handle out, py::handle lse, const std::vector<py::object>& arrays,
                             std::optional<double> scale, double soft_cap, std::int64_t left,
                             std::int64_t right, double dropout, std::uint64_t seed,
                             std::uint64_t offset, bool in_rows) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key");
  const Array v = array_operand(value, "value"), dy = array_operand(grad, "grad");
  const Array y = array_operand(out, "out"), logarithms = array_operand(lse, "lse");
  AttentionOptions options{.scale = scale, .soft_cap = soft_cap, .left = left, .right = right};
  options.dropout = dropout;
  options.seed = seed;
  options.offset = offset;
  read_attention_arrays(options, arrays);
  kernels::AttentionGradients made = on_current_stream(q, [&](const Stream& on) {
    return kernels::attention_backward(dy, q, k, v, y, logarithms, options, in_rows, on);
  });
  if (made.rows) return py::make_tuple(*std::move(made.rows));
  return py::make_tuple(std::move(made.query), std::move(made.key), std::move(made.value));
}

/// Page table, scales of keys and of values, rows of tokens.
kernels::CachePlaces cache_places(const std::vector<py::object>& arrays) {
  if (arrays.size() != 4) throw ArgumentError("the places of new tokens are four arrays");
  return {.page_table = optional_operand(arrays[0], "page_table"),
          .k_scales = optional_operand(arrays[1], "key_scale"),
          .v_scales = optional_operand(arrays[2], "value_scale"),
          .rows = optional_operand(arrays[3], "token_rows")};
}

void append_cache(py::handle key, py::handle value, py::handle key_cache, py::handle value_cache,
                  py::handle positions, const std::vector<py::object>& arrays) {
  const Array k = array_operand(key, "key"), v = array_operand(value, "value");
  const Array to_k = array_operand(key_cache, "key_cache");
  const Array to_v = array_operand(value_cache, "value_cache");
  const Array at = array_operand(positions, "positions");
  const kernels::CachePlaces places = cache_places(arrays);
  on_current_stream(
      k, [&](const Stream& on) { kernels::append_cache(k, v, to_k, to_v, at, places, on); });
}

Array append_qkv(const std::vector<py::object>& tokens, py::handle key_cache,
                 py::handle value_cache, py::handle positions,
                 const std::vector<py::object>& arrays, const std::vector<py::object>& places,
                 double eps, bool interleaved) {
  if (tokens.size() != 3 || arrays.size() != 5) {
    throw ArgumentError("append_qkv has three arrays of tokens and five more");
  }
  const kernels::NewTokens news{array_operand(tokens[0], "qkv"), optional_operand(tokens[1], "k"),
                                optional_operand(tokens[2], "v")};
  const Array to_k = array_operand(key_cache, "key_cache");
  const Array to_v = array_operand(value_cache, "value_cache");
  const Array at = array_operand(positions, "positions");
  const auto other = [&](std::size_t i, const char* name) {
    return optional_operand(arrays[i], name);
  };
  const kernels::AppendOptions options{.q_weight = other(0, "q_weight"),
                                       .k_weight = other(1, "k_weight"),
                                       .eps = eps,
                                       .cos = other(2, "cos"),
                                       .sin = other(3, "sin"),
                                       .interleaved = interleaved,
                                       .rope_positions = other(4, "rope_positions"),
                                       .places = cache_places(places)};
  return on_current_stream(news.q, [&](const Stream& on) {
    return kernels::append_qkv(news, to_k, to_v, at, options, on);
  });
}

/// Keys, stages, warpgroups.
using AttentionTileNumbers = std::tuple<int, int, int>;

kernels::AttentionKernel attention_kernel_of(const std::string& kernel) {
  using kernels::AttentionKernel;
  if (kernel == "mma") return AttentionKernel::mma;
  if (kernel == "hopper") return AttentionKernel::hopper;
  if (kernel == "auto") return AttentionKernel::automatic;
  throw ArgumentError("a kernel of attention is auto, mma or hopper, not " + kernel);
}

kernels::AttentionPlan attention_plan(const std::string& kernel,
                                      const std::optional<AttentionTileNumbers>& tile,
                                      std::int64_t splits) {
  kernels::AttentionPlan plan{attention_kernel_of(kernel)};
  if (tile) {
    const auto& [keys, stages, groups] = *tile;
    plan.tile = kernels::HopperAttentionTile{keys, stages, groups, splits};
  }
  require_attention_plan(plan);
  return plan;
}

kernels::AttentionBackwardPlan backward_plan(const std::string& kernel, std::optional<int> heads) {
  const kernels::AttentionBackwardPlan plan{attention_kernel_of(kernel), heads};
  require_backward_plan(plan);
  return plan;
}

/// A context manager: calls of this thread inside take the plan.
template <typename Plan>
struct PlanContext {
  explicit PlanContext(const Plan& given) : plan(given) {}

  Plan plan;
  std::optional<kernels::PlanScope<Plan>> scope{};

  template <typename... Arguments>
  static void bind(py::module_& m, const char* name, Plan (*make)(Arguments...),
                   const auto&... names) {
    py::class_<PlanContext>(m, name)
        .def(py::init([make](Arguments... given) {
               return std::make_unique<PlanContext>(make(given...));
             }),
             names...)
        .def("__enter__", [](PlanContext& self) { self.scope.emplace(self.plan); })
        .def("__exit__", [](PlanContext& self, const py::args&) { self.scope.reset(); });
  }
};

py::list attention_tiles() {
  py::list all;
  for (const auto& tile : kernels::hopper_attention_tiles()) {
    all.append(py::make_tuple(tile.keys, tile.stages, tile.groups));
  }
  return all;
}

}  // namespace

void bind_attention(py::module_& m) {
  m.def("_attention", &attention);
  m.def("_paged_attention", &paged_attention);
  m.def("_float8_attention", &float8_attention);
  m.def("_attention_backward", &attention_backward);
  m.def("_append_cache", &append_cache);
  m.def("_append_qkv", &append_qkv);
  PlanContext<kernels::AttentionPlan>::bind(m, "_AttentionPlan", &attention_plan, py::arg("kernel"),
                                            py::arg("tile") = py::none(), py::arg("splits") = 1);
  PlanContext<kernels::AttentionBackwardPlan>::bind(m, "_AttentionBackwardPlan", &backward_plan,
                                                    py::arg("kernel"),
                                                    py::arg("heads") = py::none());
  m.def("_attention_tiles", &attention_tiles);
}

}  // namespace kernwright::python
