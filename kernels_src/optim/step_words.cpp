// Checks the words of a step, and launches the kernels of one thread that change them.
#include "kernels_src/optim/step_words.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/optim/step_words.cu.h"

#include <array>
#include <initializer_list>

namespace kernwright::kernels {

namespace {

/// As the kernels have them.
struct FactorSettings {
  CUdeviceptr norm, loss_scale, given, tokens;
  double limit;
};
struct AdvanceSettings {
  CUdeviceptr steps, skip, tokens, loss_scale, good;
  double growth, backoff;
  std::int64_t interval;
  std::int32_t count;
  std::array<CUdeviceptr, kScheduledGroups> groups;
};

enum class WordKernel : std::uint8_t { factor, advance, count };

const Kernel& word_kernel(WordKernel kernel, Device& device) {
  static const auto& family = *new Family("step_words.cu", text::step_words_cu);
  static constexpr std::array<const char*, 3> kNames = {"gradient_factor", "advance_step",
                                                        "add_count"};
  const auto name = [&] { return std::string(kNames[static_cast<std::size_t>(kernel)]); };
  return family.instance(InstanceKey().add(kernel, 2), name).on(device);
}

LaunchConfig word_launch(const Stream& on) {
  LaunchConfig config;
  config.block = {1};
  config.stream = on;
  return config;
}

Stream word_stream(const Stream& stream, Device& device) {
  return stream ? stream : Stream::legacy(device);
}

void use_words(std::initializer_list<std::optional<Array>> words, const Stream& on) {
  for (const auto& each : words)
    if (each) each->use_on(on);
}

CUdeviceptr group_address(const Array& words, const Device& device) {
  if (words.size() != kGroupWords || words.type() != ScalarType::float64 ||
      &words.device() != &device || !words.is_contiguous())
    throw InvalidArgument(
        format("the words of a group are {} float64 on the device of the "
               "parameters, not {}",
               kGroupWords, words.identify()));
  return words.address();
}

}  // namespace

CUdeviceptr word_address(const std::optional<Array>& word, ScalarType type, const char* name,
                         const Device& device) {
  if (!word) return 0;
  if (word->size() != 1 || word->type() != type || &word->device() != &device)
    throw InvalidArgument(format("{} is one {} on the device of the parameters, not {}", name,
                                 scalar_name(type), word->identify()));
  return word->address();
}

GradientFactor gradient_factor(const FactorWords& words, Device& device, const Stream& stream) {
  if (!(words.limit >= 0))
    throw InvalidArgument(format("max_norm is not negative, got {}", words.limit));
  const FactorSettings settings = {
      word_address(words.norm, ScalarType::float32, "the norm", device),
      word_address(words.loss_scale, ScalarType::float32, "the loss scale", device),
      word_address(words.given, ScalarType::float32, "grad_scale", device),
      word_address(words.tokens, ScalarType::int64, "the count of tokens", device), words.limit};
  const Kernel& kernel = word_kernel(WordKernel::factor, device);
  const Stream on = word_stream(stream, device);
  GradientFactor made = {Array::empty(device, {}, ScalarType::float32, stream),
                         Array::empty(device, {}, ScalarType::float32, stream),
                         Array::empty(device, {}, ScalarType::int32, stream)};
  launch(kernel, word_launch(on), settings, made.factor.address(), made.norm.address(),
         made.skip.address());
  use_words(
      {words.norm, words.loss_scale, words.given, words.tokens, made.factor, made.norm, made.skip},
      on);
  return made;
}

std::function<void()> prepare_advance(const AdvanceWords& words, const Stream& stream) {
  Device& device = words.steps.device();
  AdvanceSettings settings{};
  settings.steps = word_address(words.steps, ScalarType::int64, "the count of steps", device);
  settings.skip = word_address(words.skip, ScalarType::int32, "skip", device);
  settings.tokens = word_address(words.tokens, ScalarType::int64, "the count of tokens", device);
  settings.loss_scale =
      word_address(words.loss_scale, ScalarType::float32, "the loss scale", device);
  settings.good = word_address(words.good, ScalarType::int64, "the count of good steps", device);
  if (words.loss_scale.has_value() != words.good.has_value())
    throw InvalidArgument("a loss scale has a count of its good steps");
  settings.growth = words.growth;
  settings.backoff = words.backoff;
  settings.interval = words.interval;
  if (words.groups.size() > kScheduledGroups)
    throw InvalidArgument(format("an optimiser has at most {} scheduled learning rates, got {}",
                                 kScheduledGroups, words.groups.size()));
  settings.count = static_cast<std::int32_t>(words.groups.size());
  for (std::size_t i = 0; i < words.groups.size(); ++i) {
    settings.groups[i] = group_address(words.groups[i], device);
  }
  const Kernel& kernel = word_kernel(WordKernel::advance, device);
  return [words, settings, &kernel, on = word_stream(stream, device)] {
    launch(kernel, word_launch(on), settings);
    use_words({words.steps, words.skip, words.tokens, words.loss_scale, words.good}, on);
    for (const Array& each : words.groups) each.use_on(on);
  };
}

std::function<void()> prepare_count(const Array& count, const std::optional<Array>& word,
                                    std::int64_t number, const Stream& stream) {
  Device& device = count.device();
  const CUdeviceptr to = word_address(count, ScalarType::int64, "the count", device);
  const CUdeviceptr from = word_address(word, ScalarType::int64, "tokens", device);
  const Kernel& kernel = word_kernel(WordKernel::count, device);
  return [=, &kernel, on = word_stream(stream, device)] {
    launch(kernel, word_launch(on), to, from, number);
    use_words({count, word}, on);
  };
}

}  // namespace kernwright::kernels
