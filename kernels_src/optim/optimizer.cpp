// Checks what belongs together, groups tensors by their types, and launches.
#include "kernels_src/optim/optimizer.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/optim/tensor_lists.h"

#include <functional>

namespace kernwright::kernels {

namespace {

/// As the kernel has it.
struct OptimizerSettings {
  double rate, beta1, beta2, epsilon, decay, momentum, dampening, gain;
  CUdeviceptr words, rates, steps;
  std::int64_t step;
  CUdeviceptr scale, skip;
  std::uint64_t seed;
  bool nesterov, maximize;
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
    case OptimizerRule::direction:
      return {"Direction", 1};
    case OptimizerRule::average:
      return {"Average", 0};
    case OptimizerRule::decoupled:
      return {"Decoupled", 0};
    case OptimizerRule::sgd:
      break;
  }
  return options.momentum != 0 ? OptimizerKind{"Momentum", 1} : OptimizerKind{"Plain", 0};
}

const LazyKernel& group_step(const OptimizerGroup& group, const OptimizerKind& kind,
                             const OptimizerOptions& options, bool master) {
  const auto key = InstanceKey()
                       .add(options.rule, 3)
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
  settings.gain = options.gain;
  settings.skip = word_address(options.skip, ScalarType::int32, "skip", device);
  if (options.words) {
    if (options.words->size() != 7 || options.words->type() != ScalarType::float64 ||
        &options.words->device() != &device || !options.words->is_contiguous())
      throw InvalidArgument(
          format("words are seven float64 on the device of the parameters, not {}",
                 options.words->identify()));
    settings.words = options.words->address();
  }
  settings.rates = word_address(options.rates, ScalarType::float32, "lr", device);
  settings.steps = word_address(options.steps, ScalarType::int64, "step", device);
  settings.step = options.step;
  settings.scale = word_address(options.scale, ScalarType::float32, "grad_scale", device);
  settings.seed = options.seed;
  settings.nesterov = options.nesterov;
  settings.maximize = options.maximize;
  return settings;
}

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

/// A part whose checks are done, with the kernel of each group.
struct PreparedPart {
  const OptimizerPart* part;
  OptimizerKind kind;
  OptimizerSettings settings;
  std::vector<Array> grads;
  OptimizerGroups groups;
  std::vector<const Kernel*> kernels;
};

PreparedPart prepare_part(const OptimizerPart& part, const Stream& stream) {
  const auto& [tensors, options] = part;
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
  PreparedPart made = {&part, kind, optimizer_settings(options, device), {}, {}, {}};
  made.grads = contiguous_tensors(tensors.grads, stream);
  made.groups = optimizer_groups(tensors, made.grads, kind.states);
  for (const auto& [group, members] : made.groups)
    made.kernels.push_back(&group_step(group, kind, options, master).on(device));
  return made;
}

void launch_part(const PreparedPart& prepared, const Stream& on) {
  const auto& [tensors, options] = *prepared.part;
  const int states = prepared.kind.states;
  const bool master = !tensors.masters.empty();
  std::size_t next = 0;
  for (const auto& [group, members] : prepared.groups) {
    const Kernel& kernel = *prepared.kernels[next++];
    for_each_table(
        members, tensors.params,
        [&](TensorTable& table, std::size_t slot, std::size_t i) {
          table.param[slot] = tensors.params[i].address();
          table.grad[slot] = prepared.grads[i].address();
          if (states > 0) table.first[slot] = tensors.first[i].address();
          if (states > 1) table.second[slot] = tensors.second[i].address();
          if (states > 2) table.third[slot] = tensors.third[i].address();
          if (master) table.master[slot] = tensors.masters[i].address();
        },
        [&](const TensorTable& table) {
          launch(kernel, table_config(table, on), table, prepared.settings);
        });
  }
  for (const auto* list : {&tensors.params, &prepared.grads, &tensors.first, &tensors.second,
                           &tensors.third, &tensors.masters})
    use_tensors(*list, on);
  for (const auto* one :
       {&options.steps, &options.rates, &options.scale, &options.words, &options.skip})
    if (*one) (*one)->use_on(on);
}

}  // namespace

void optimizer_steps(const std::vector<OptimizerPart>& parts,
                     const std::optional<AdvanceWords>& words, const Stream& stream) {
  std::function<void()> advance;
  if (words) advance = prepare_advance(*words, stream);
  std::vector<PreparedPart> prepared;
  prepared.reserve(parts.size());
  for (const OptimizerPart& each : parts)
    if (!each.tensors.params.empty()) prepared.push_back(prepare_part(each, stream));
  if (advance) advance();
  for (const PreparedPart& each : prepared) {
    Device& device = each.part->tensors.params[0].device();
    launch_part(each, stream ? stream : Stream::legacy(device));
  }
}

void optimizer_step(const OptimizerTensors& tensors, const OptimizerOptions& options,
                    const Stream& stream) {
  optimizer_steps({{tensors, options}}, std::nullopt, stream);
}

}  // namespace kernwright::kernels
