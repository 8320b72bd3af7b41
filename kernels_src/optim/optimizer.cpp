// Checks what belongs together, groups tensors by their types, and launches.
#include "kernels_src/optim/optimizer.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "jit/kernels_ahead.h"
#include "kernels_src/copy/copy.h"
#include "kernels_src/family.h"
#include "kernels_src/optim/optimizer.cu.h"
#include "kernels_src/optim/tensor_table.h"

#include <cmath>
#include <map>
#include <tuple>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kOptimizerThreads = 256;

/// As the kernel has it.
struct OptimizerSettings {
  double rate, beta1, beta2, epsilon, decay, momentum, dampening;
  CUdeviceptr rates, steps;
  std::int64_t step;
  CUdeviceptr scale;
  std::uint64_t seed;
  bool nesterov, maximize;
};

const Family& optimizer_family() {
  static const auto& made = *new Family("optimizer.cu", text::optimizer_cu);
  return made;
}

/// The inputs with the same instance.
struct OptimizerGroup {
  ScalarType param, grad, state;
  int width;
  bool operator<(const OptimizerGroup& o) const {
    return std::tie(param, grad, state, width) < std::tie(o.param, o.grad, o.state, o.width);
  }
};

struct OptimizerKind {
  const char* name;
  int states;
};

OptimizerKind optimizer_kind(const OptimizerOptions& options) {
  switch (options.rule) {
    case OptimizerRule::adamw:
      return options.amsgrad ? OptimizerKind{"AdamW<true>", 3} : OptimizerKind{"AdamW<false>", 2};
    case OptimizerRule::adam:
      return options.amsgrad ? OptimizerKind{"Adam<true>", 3} : OptimizerKind{"Adam<false>", 2};
    case OptimizerRule::lion:
      return {"Lion", 1};
    case OptimizerRule::sgd:
      break;
  }
  return options.momentum != 0 ? OptimizerKind{"Momentum", 1} : OptimizerKind{"Plain", 0};
}

const LazyKernel& step_of_group(const OptimizerGroup& group, const OptimizerKind& kind,
                                const OptimizerOptions& options, bool master) {
  const auto key = InstanceKey()
                       .add(options.rule, 2)
                       .add(kind.states, 2)
                       .type(group.param)
                       .type(group.grad)
                       .type(group.state)
                       .add(master, 1)
                       .add(options.stochastic_rounding, 1)
                       .add(group.width, 3)
                       .add(1, 2);
  return optimizer_family().instance(key, [&] {
    return format("optimizer_step<{}, {}, {}, {}, {}, {}, {}>", kind.name, device_type(group.param),
                  device_type(group.grad), device_type(group.state), master ? "true" : "false",
                  options.stochastic_rounding ? "true" : "false", group.width);
  });
}

bool is_optimizer_type(ScalarType type) { return is_floating(type) && scalar_size(type) > 1; }

void require_optimizer_tensor(const Array& array, const Array& param, const char* name,
                              std::size_t index, bool written) {
  if (array.shape() != param.shape())
    throw InvalidArgument(format("{}[{}] has shape {}, and params[{}] {}", name, index,
                                 shape_to_string(array.shape()), index,
                                 shape_to_string(param.shape())));
  if (!is_optimizer_type(array.type()))
    throw InvalidArgument(format("{}[{}] is float16, bfloat16, float32 or float64, not {}", name,
                                 index, scalar_name(array.type())));
  if (&array.device() != &param.device())
    throw InvalidArgument(format("{}[{}] is {}, and params[{}] {}: all must be on the same device",
                                 name, index, array.identify(), index, param.identify()));
  if (written && (!array.is_contiguous() || array.read_only()))
    throw InvalidArgument(
        format("{}[{}] is written in place: it must be contiguous and not read-only", name, index));
}

void require_optimizer_list(const std::vector<Array>& list, const std::vector<Array>& params,
                            const char* name, bool written) {
  if (list.size() != params.size())
    throw InvalidArgument(
        format("{} has {} tensors, and params {}", name, list.size(), params.size()));
  for (std::size_t i = 0; i < list.size(); ++i) {
    require_optimizer_tensor(list[i], params[i], name, i, written);
    if (&params[i].device() != &params[0].device())
      throw InvalidArgument(format("all tensors must be on the same device: {} and {}",
                                   params[0].identify(), params[i].identify()));
  }
}

/// States and masters of a tensor have one type, float64 if anything is.
void require_optimizer_types(const OptimizerTensors& tensors, const OptimizerOptions& options,
                             int states) {
  for (std::size_t i = 0; i < tensors.params.size(); ++i) {
    std::vector<const Array*> kept;
    if (states > 0) kept.push_back(&tensors.first[i]);
    if (states > 1) kept.push_back(&tensors.second[i]);
    if (states > 2) kept.push_back(&tensors.third[i]);
    if (!tensors.masters.empty()) kept.push_back(&tensors.masters[i]);
    const ScalarType param = tensors.params[i].type();
    for (const Array* const each : kept) {
      if (each->type() != kept[0]->type())
        throw InvalidArgument(format("the states of params[{}] are {} and {}: give them one dtype",
                                     i, scalar_name(kept[0]->type()), scalar_name(each->type())));
      if ((each->type() == ScalarType::float64) != (param == ScalarType::float64))
        throw InvalidArgument(
            format("params[{}] is {}, and its states {}: float64 goes with "
                   "float64 alone",
                   i, scalar_name(param), scalar_name(each->type())));
    }
    if (!tensors.masters.empty() && kept[0]->type() != ScalarType::float32)
      throw InvalidArgument(format("masters[{}] and the states are float32, not {}", i,
                                   scalar_name(kept[0]->type())));
    if (options.stochastic_rounding && param != ScalarType::bfloat16)
      throw InvalidArgument(format("stochastic rounding is of bfloat16, and params[{}] is {}", i,
                                   scalar_name(param)));
  }
}

CUdeviceptr one_optimizer_number(const std::optional<Array>& array, ScalarType type,
                                 const char* name, const Device& device) {
  if (!array) return 0;
  if (array->size() != 1 || array->type() != type || &array->device() != &device)
    throw InvalidArgument(format("{} is one {} on the device of the parameters, not {}", name,
                                 scalar_name(type), array->identify()));
  return array->address();
}

OptimizerSettings optimizer_settings(const OptimizerOptions& options, const Device& device) {
  if (options.step < 1 && !options.steps)
    throw InvalidArgument(format("steps are counted from 1, got {}", options.step));
  OptimizerSettings settings{};
  settings.rate = options.rate;
  settings.beta1 = options.beta1;
  settings.beta2 = options.beta2;
  settings.epsilon = options.epsilon;
  settings.decay = options.decay;
  settings.momentum = options.momentum;
  settings.dampening = options.dampening;
  settings.rates = one_optimizer_number(options.rates, ScalarType::float32, "lr", device);
  settings.steps = one_optimizer_number(options.steps, ScalarType::int64, "step", device);
  settings.step = options.step;
  settings.scale = one_optimizer_number(options.scale, ScalarType::float32, "grad_scale", device);
  settings.seed = options.seed;
  settings.nesterov = options.nesterov;
  settings.maximize = options.maximize;
  return settings;
}

LaunchConfig table_config(const TensorTable& table, const Stream& on) {
  LaunchConfig config;
  config.grid = {table.block_end[static_cast<std::size_t>(table.count - 1)]};
  config.block = {kOptimizerThreads};
  config.stream = on;
  return config;
}

std::vector<Array> contiguous_tensors(const std::vector<Array>& arrays, const Stream& stream) {
  std::vector<Array> made;
  made.reserve(arrays.size());
  for (const Array& each : arrays) made.push_back(each.is_contiguous() ? each : copy(each, stream));
  return made;
}

using OptimizerGroups = std::map<OptimizerGroup, std::vector<std::size_t>>;

OptimizerGroups optimizer_groups(const OptimizerTensors& tensors, const std::vector<Array>& grads,
                                 int states) {
  OptimizerGroups groups;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    std::vector<const Array*> all = {&tensors.params[i], &grads[i]};
    ScalarType state =
        tensors.params[i].type() == ScalarType::float64 ? ScalarType::float64 : ScalarType::float32;
    if (!tensors.masters.empty()) all.push_back(&tensors.masters[i]);
    if (states > 0) all.push_back(&tensors.first[i]);
    if (states > 1) all.push_back(&tensors.second[i]);
    if (states > 2) all.push_back(&tensors.third[i]);
    if (all.size() > 2) state = all.back()->type();
    groups[{tensors.params[i].type(), grads[i].type(), state, table_width(all)}].push_back(i);
  }
  return groups;
}

/// The same of gradients alone.
OptimizerGroups optimizer_groups(const std::vector<Array>& grads) {
  OptimizerGroups groups;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const ScalarType type = grads[i].type();
    const Array* const own = &grads[i];
    groups[{type, type, type, table_width({&own, 1})}].push_back(i);
  }
  return groups;
}

/// The kernels' way to a norm.
struct NormOrder {
  const char* name;
  int number;
};

NormOrder norm_order(double order) {
  if (!(order > 0))
    throw InvalidArgument(format("norm_type is above 0 (infinity: the largest), got {}", order));
  if (std::isinf(order)) return {"kLargest", 0};
  if (order == 1) return {"kMagnitudes", 1};
  if (order == 2) return {"kSquares", 2};
  return {"kPowers", 3};
}

void use_tensors(const std::vector<Array>& arrays, const Stream& on) {
  for (const Array& each : arrays) each.use_on(on);
}

}  // namespace

void optimizer_step(const OptimizerTensors& tensors, const OptimizerOptions& options,
                    const Stream& stream) {
  if (tensors.params.empty()) return;
  const OptimizerKind kind = optimizer_kind(options);
  const bool master = !tensors.masters.empty();
  require_optimizer_list(tensors.params, tensors.params, "params", true);
  require_optimizer_list(tensors.grads, tensors.params, "grads", false);
  if (kind.states > 0) require_optimizer_list(tensors.first, tensors.params, "states", true);
  if (kind.states > 1) require_optimizer_list(tensors.second, tensors.params, "exp_avg_sqs", true);
  if (kind.states > 2)
    require_optimizer_list(tensors.third, tensors.params, "max_exp_avg_sqs", true);
  if (master) require_optimizer_list(tensors.masters, tensors.params, "masters", true);
  require_optimizer_types(tensors, options, kind.states);
  Device& device = tensors.params[0].device();
  const OptimizerSettings settings = optimizer_settings(options, device);
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::vector<Array> grads = contiguous_tensors(tensors.grads, stream);
  for (const auto& [group, members] : optimizer_groups(tensors, grads, kind.states)) {
    const Kernel& kernel = step_of_group(group, kind, options, master).on(device);
    for_each_table(
        members, tensors.params,
        [&](TensorTable& table, std::size_t slot, std::size_t i) {
          table.param[slot] = tensors.params[i].address();
          table.grad[slot] = grads[i].address();
          if (kind.states > 0) table.first[slot] = tensors.first[i].address();
          if (kind.states > 1) table.second[slot] = tensors.second[i].address();
          if (kind.states > 2) table.third[slot] = tensors.third[i].address();
          if (master) table.master[slot] = tensors.masters[i].address();
        },
        [&](const TensorTable& table) {
          launch(kernel, table_config(table, on), table, settings);
        });
  }
  for (const auto* list :
       {&tensors.params, &grads, &tensors.first, &tensors.second, &tensors.third, &tensors.masters})
    use_tensors(*list, on);
  for (const auto* one : {&options.steps, &options.rates, &options.scale})
    if (*one) (*one)->use_on(on);
}

GradientNorm gradient_norm(const std::vector<Array>& grads, double limit, double order,
                           const Stream& stream) {
  if (grads.empty()) throw InvalidArgument("the norm of no gradients has no device: pass some");
  if (!(limit >= 0)) throw InvalidArgument(format("max_norm is not negative, got {}", limit));
  const NormOrder kind = norm_order(order);
  Device& device = grads[0].device();
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    require_optimizer_tensor(grads[i], grads[i], "grads", i, false);
    if (&grads[i].device() != &device)
      throw InvalidArgument(format("all gradients must be on the same device: {} and {}",
                                   grads[0].identify(), grads[i].identify()));
    blocks += (grads[i].size() + static_cast<std::int64_t>(kTableChunk) - 1) /
              static_cast<std::int64_t>(kTableChunk);
  }
  const Stream on = stream ? stream : Stream::legacy(device);
  const std::vector<Array> whole = contiguous_tensors(grads, stream);
  const Array partial = Array::empty(device, {blocks}, ScalarType::float64, stream);
  GradientNorm result = {Array::empty(device, {}, ScalarType::float32, stream),
                         Array::empty(device, {}, ScalarType::float32, stream)};
  CUdeviceptr next = partial.address();
  const LazyKernel& finish =
      optimizer_family().instance(InstanceKey().add(kind.number, 2).add(3, 2),
                                  [&] { return format("finish_norm<{}>", kind.name); });
  KernelsAhead kernels;
  kernels.begin(finish, device);
  for (const auto& [group, members] : optimizer_groups(whole)) {
    const auto key =
        InstanceKey().type(group.grad).add(kind.number, 2).add(group.width, 3).add(2, 2);
    const LazyKernel& kernel = optimizer_family().instance(key, [&, &shape = group] {
      return format("norm_of_chunks<{}, {}, {}>", device_type(shape.grad), kind.name, shape.width);
    });
    for_each_table(
        members, whole,
        [&](TensorTable& table, std::size_t slot, std::size_t i) {
          table.grad[slot] = whole[i].address();
        },
        [&](const TensorTable& table) {
          const LaunchConfig config = table_config(table, on);
          launch(kernel.on(device), config, next, table, order);
          next += config.grid.x * sizeof(double);
        });
  }
  LaunchConfig config;
  config.block = {1024};
  config.stream = on;
  launch(kernels.on(finish, device), config, result.norm.address(), result.scale.address(),
         partial.address(), static_cast<std::uint32_t>(blocks), limit, order);
  use_tensors(whole, on);
  use_tensors({partial, result.norm, result.scale}, on);
  return result;
}

void scale_tensors(const std::vector<Array>& tensors, const Array& scale, const Stream& stream) {
  if (tensors.empty()) return;
  Device& device = tensors[0].device();
  require_optimizer_list(tensors, tensors, "grads", true);
  const CUdeviceptr factor = one_optimizer_number(scale, ScalarType::float32, "scale", device);
  const Stream on = stream ? stream : Stream::legacy(device);
  for (const auto& [group, members] : optimizer_groups(tensors)) {
    const auto key = InstanceKey().type(group.grad).add(group.width, 3).add(0, 2);
    const LazyKernel& kernel = optimizer_family().instance(key, [&, &shape = group] {
      return format("scale_tensors<{}, {}>", device_type(shape.grad), shape.width);
    });
    for_each_table(
        members, tensors,
        [&](TensorTable& table, std::size_t slot, std::size_t i) {
          table.param[slot] = tensors[i].address();
        },
        [&](const TensorTable& table) {
          launch(kernel.on(device), table_config(table, on), table, factor);
        });
  }
  use_tensors(tensors, on);
  scale.use_on(on);
}

}  // namespace kernwright::kernels
