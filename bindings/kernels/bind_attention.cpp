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

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

namespace kernwright::python {
namespace {

using kernels::AttentionOptions;

template <typename T>
using OptionMember = T AttentionOptions::*;

/// An option as Python names it.
struct AttentionOption {
  const char* name;
  std::variant<OptionMember<std::optional<Array>>, OptionMember<std::optional<double>>,
               OptionMember<double>, OptionMember<std::int64_t>, OptionMember<std::uint64_t>,
               OptionMember<bool>>
      member;
};
/// All that Python gives besides the operands, in the order of `_AttentionOptions`.
constexpr AttentionOption kAttentionOptions[] = {
    {"attn_mask", &AttentionOptions::mask},
    {"sinks", &AttentionOptions::sinks},
    {"alibi", &AttentionOptions::slopes},
    {"query_lengths", &AttentionOptions::q_lengths},
    {"lengths", &AttentionOptions::k_lengths},
    {"query_starts", &AttentionOptions::q_starts},
    {"key_starts", &AttentionOptions::k_starts},
    {"page_table", &AttentionOptions::page_table},
    {"key_scale", &AttentionOptions::k_scales},
    {"value_scale", &AttentionOptions::v_scales},
    {"scale", &AttentionOptions::scale},
    {"soft_cap", &AttentionOptions::soft_cap},
    {"left", &AttentionOptions::left},
    {"right", &AttentionOptions::right},
    {"bottom", &AttentionOptions::bottom},
    {"return_lse", &AttentionOptions::wants_lse},
    {"dropout_p", &AttentionOptions::dropout},
    {"seed", &AttentionOptions::seed},
    {"offset", &AttentionOptions::offset},
    {"splits", &AttentionOptions::splits},
    {"max_queries", &AttentionOptions::most_queries},
};

[[noreturn]] void refuse_option(const char* name, const char* words, py::handle value) {
  const bool is_int = std::string_view(words) == "an int" && PyLong_Check(value.ptr());
  if (is_int) {
    PyErr_Format(PyExc_OverflowError, "%s of %R is out of range", name, value.ptr());
  } else {
    const py::object error =
        py::module_::import("kernwright._support.calls").attr("misfit")(name, words, value);
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
  }
  throw py::error_already_set();
}

template <typename T>
void read_option(T& member, const char* name, py::handle value) {
  if constexpr (std::is_same_v<T, std::optional<Array>>) {
    member = optional_operand(value, name);
  } else {
    constexpr bool kInt = std::is_integral_v<T> && !std::is_same_v<T, bool>;
    py::detail::make_caster<T> caster;
    if (!caster.load(value, true))
      refuse_option(name, kInt ? "an int" : std::is_same_v<T, bool> ? "a bool" : "a number", value);
    member = py::detail::cast_op<T>(caster);
  }
}

/// Names and defaults of the options as objects that live for good.
struct OptionObjects {
  std::array<PyObject*, std::size(kAttentionOptions)> names, defaults;
};
const OptionObjects* option_objects = nullptr;  // set once, when the module is made

AttentionOptions read_options(const py::tuple& given) {
  if (given.size() != std::size(kAttentionOptions))
    throw ArgumentError("the options of attention are an _AttentionOptions");
  AttentionOptions options;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (PyTuple_GET_ITEM(given.ptr(), i) == option_objects->defaults[i]) continue;
    const AttentionOption& option = kAttentionOptions[i];
    std::visit([&](const auto each) { read_option(options.*each, option.name, given[i]); },
               option.member);
  }
  return options;
}

/// Makes an _AttentionOptions; arguments as in vectorcall. The constructor that named tuples have
/// in Python takes several times as long.
PyObject* make_options(PyObject* type, PyObject* const* given, std::size_t count,
                       PyObject* keywords) {
  const auto& [names, defaults] = *option_objects;
  std::array<PyObject*, std::size(kAttentionOptions)> values = defaults;
  const auto positional = static_cast<std::size_t>(PyVectorcall_NARGS(count));
  if (positional > std::size(values)) {
    PyErr_Format(PyExc_TypeError, "_AttentionOptions() got %zu values, and has %zu fields",
                 positional, std::size(values));
    return nullptr;
  }
  std::copy_n(given, positional, values.begin());
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_GET_SIZE(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* const name = PyTuple_GET_ITEM(keywords, i);
    const auto* found = std::find(names.begin() + positional, names.end(), name);
    if (found == names.end()) {  // names in the text of a call are interned, others may not be
      found = std::find_if(names.begin() + positional, names.end(),
                           [name](PyObject* each) { return PyUnicode_Compare(each, name) == 0; });
    }
    if (found == names.end()) {
      PyErr_Format(PyExc_TypeError, "_AttentionOptions() has no further field %R", name);
      return nullptr;
    }
    values[static_cast<std::size_t>(found - names.begin())] = given[positional + i];
  }
  auto* const made = reinterpret_cast<PyTypeObject*>(type)->tp_alloc(
      reinterpret_cast<PyTypeObject*>(type), std::size(values));
  if (made == nullptr) return nullptr;
  for (std::size_t i = 0; i < std::size(values); ++i) {
    PyTuple_SET_ITEM(made, static_cast<Py_ssize_t>(i), Py_NewRef(values[i]));
  }
  return made;
}

/// The named tuple of the options, with their defaults.
py::object attention_options_type(const py::module_& m) {
  const AttentionOptions absent;
  auto objects = std::make_unique<OptionObjects>();
  py::list names, defaults;
  for (std::size_t i = 0; i < std::size(kAttentionOptions); ++i) {
    const auto& [name, member] = kAttentionOptions[i];
    names.append(py::reinterpret_steal<py::object>(PyUnicode_InternFromString(name)));
    std::visit([&](const auto each) { defaults.append(py::cast(absent.*each)); }, member);
    objects->names[i] = Py_NewRef(names[i].ptr());
    objects->defaults[i] = Py_NewRef(defaults[i].ptr());
  }
  option_objects = objects.release();
  py::object type =
      py::module_::import("collections")
          .attr("namedtuple")("_AttentionOptions", names, py::arg("defaults") = defaults,
                              py::arg("module") = m.attr("__name__"));
  reinterpret_cast<PyTypeObject*>(type.ptr())->tp_vectorcall = &make_options;
  return type;
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
                    const py::tuple& given, const std::optional<AttentionTargets>& out) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key");
  const Array v = array_operand(value, "value");
  AttentionOptions options = read_options(given);
  read_attention_targets(options, out);
  kernels::Attended made = on_current_stream(q, [&](const Stream& on) {
    return decode ? kernels::decode_attention(q, k, v, options, on)
                  : kernels::attention(q, k, v, options, on);
  });
  return py::make_tuple(std::move(made.out), std::move(made.lse));
}

py::tuple paged_attention(py::handle query, py::handle key, py::handle value,
                          const py::tuple& given, const std::optional<AttentionTargets>& out) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key_cache");
  const Array v = array_operand(value, "value_cache");
  AttentionOptions options = read_options(given);
  read_attention_targets(options, out);
  kernels::Attended made = on_current_stream(
      q, [&](const Stream& on) { return kernels::paged_attention(q, k, v, options, on); });
  return py::make_tuple(std::move(made.out), std::move(made.lse));
}

/// None where operands have to be widened. `scales`: of query, key and value; `scores` and `values`
/// are numbers for all heads.
py::object float8_attention(py::handle query, py::handle key, py::handle value,
                            const py::tuple& given, const std::vector<py::object>& scales,
                            double scores, double values, bool fast_accum,
                            const std::optional<AttentionTargets>& out) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key");
  const Array v = array_operand(value, "value");
  AttentionOptions options = read_options(given);
  read_attention_targets(options, out);
  if (scales.size() != 3) throw ArgumentError("float8 attention has three scales");
  const kernels::OperandScales factors{.query = optional_operand(scales[0], "query_scale"),
                                       .key = optional_operand(scales[1], "key_scale"),
                                       .value = optional_operand(scales[2], "value_scale"),
                                       .scores = scores,
                                       .values = values};
  auto made = on_current_stream(q, [&](const Stream& on) {
    return kernels::float8_attention(q, k, v, options, factors, fast_accum, on);
  });
  if (!made) return py::none();
  return py::make_tuple(std::move(made->out), std::move(made->lse));
}

py::tuple attention_backward(py::handle grad, py::handle query, py::handle key, py::handle value,
                             py::handle out, py::handle lse, const py::tuple& given, bool in_rows) {
  const Array q = array_operand(query, "query"), k = array_operand(key, "key");
  const Array v = array_operand(value, "value"), dy = array_operand(grad, "grad");
  const Array y = array_operand(out, "out"), logarithms = array_operand(lse, "lse");
  const AttentionOptions options = read_options(given);
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

kernels::AttentionKernel parse_attention_kernel(const std::string& kernel) {
  using kernels::AttentionKernel;
  if (kernel == "mma") return AttentionKernel::mma;
  if (kernel == "hopper") return AttentionKernel::hopper;
  if (kernel == "auto") return AttentionKernel::automatic;
  throw ArgumentError("a kernel of attention is auto, mma or hopper, not " + kernel);
}

kernels::AttentionPlan attention_plan(const std::string& kernel,
                                      const std::optional<AttentionTileNumbers>& tile,
                                      std::int64_t splits) {
  kernels::AttentionPlan plan{parse_attention_kernel(kernel)};
  if (tile) {
    const auto& [keys, stages, groups] = *tile;
    plan.tile = kernels::HopperAttentionTile{keys, stages, groups, splits};
  }
  require_attention_plan(plan);
  return plan;
}

kernels::AttentionBackwardPlan backward_plan(const std::string& kernel, std::optional<int> heads) {
  const kernels::AttentionBackwardPlan plan{parse_attention_kernel(kernel), heads};
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
  m.attr("_AttentionOptions") = attention_options_type(m);
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
