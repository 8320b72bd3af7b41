// Reads tables of choices, and remembers what was decided where a launch can load it.
#include "kernels_src/launch_choices.h"

#include "base/env.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "base/secure_directory.h"
#include "base/whole_file.h"
#include "kernels_src/launch_choices.json.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

namespace kernwright::kernels {
namespace {

#define KW_NUMBERS(...) __VA_ARGS__
#define KW_CHOICE(id, family, name, measure, candidates, meaning) \
  constexpr int k_##id[] = {KW_NUMBERS candidates};
#include "kernels_src/launch_choices.def"
#undef KW_CHOICE

constexpr std::array kLaunchChoices = {
#define KW_CHOICE(id, family, name, measure, candidates, meaning) \
  LaunchChoiceInfo{family, name, ChoiceMeasure::measure, k_##id, meaning},
#include "kernels_src/launch_choices.def"
#undef KW_CHOICE
};

constexpr std::size_t kChoiceExtents = 3, kChoiceSizes = 5;
constexpr std::array<const char*, kChoiceExtents> kExtentNames = {"short", "middle", "long"};
/// Devices with a place of their own; the rest asks the table each time.
constexpr std::size_t kChoiceDevices = 32;

struct ChoiceClass {
  std::size_t extent, size;
  std::size_t number() const { return extent * kChoiceSizes + size; }
};

ChoiceClass choice_class(ChoiceMeasure measure, std::int64_t extent, std::size_t element) {
  const bool row = measure == ChoiceMeasure::row;
  const std::int64_t middle = row ? 1024 : std::int64_t{1} << 20;
  const std::int64_t largest = row ? 8192 : std::int64_t{1} << 24;
  const std::size_t log2 = static_cast<std::size_t>(std::bit_width(element | 1) - 1);
  return {static_cast<std::size_t>((extent > middle) + (extent > largest)),
          std::min(log2, kChoiceSizes - 1)};
}

/// Choices of one device: "softmax.values" -> class -> number.
using DeviceChoices = std::map<std::string, std::map<std::string, int>>;
using LaunchTable = std::map<std::string, DeviceChoices>;

LaunchTable parse_launch_table(std::string_view text, const std::string& origin) {
  try {
    const auto json = nlohmann::json::parse(text);
    if (json.at("format").get<int>() != 1) {
      throw InvalidArgument(
          format("{} is a table of kernels' choices of format {}; this release "
                 "reads format 1",
                 origin, json.at("format").dump()));
    }
    return json.at("devices").get<LaunchTable>();
  } catch (const nlohmann::json::exception& error) {
    throw InvalidArgument(
        format("{} is no table of kernels' choices: {}; `kernwright tune-kernels` "
               "writes one",
               origin, error.what()));
  }
}

constexpr std::int16_t kUndecided = 0, kByRule = -1;

/// The table in use, behind a lock, and the decisions taken from it, read without a lock.
class ChoiceState {
 public:
  ChoiceState() = default;
  /// The table of another one, as it is now, but for the candidates.
  ChoiceState(ChoiceState& from, std::span<const LaunchCandidate> candidates) {
    for (const auto& [choice, value] : candidates) {
      candidates_[static_cast<std::size_t>(choice)] = value;
    }
    const std::lock_guard lock(from.mutex_);
    from.read_once();
    users_ = from.users_;
    has_read_ = true;
  }

  int decided(LaunchChoice choice, const Device& device, ChoiceClass shape) noexcept {
    const std::size_t at = place(device);
    if (at >= kChoiceDevices) return decide(choice, device, shape);
    auto& slot = slots_[static_cast<std::size_t>(choice)][at][shape.number()];
    const std::int16_t known = slot.load(std::memory_order_relaxed);
    if (known != kUndecided) [[likely]]
      return known;
    return decide(choice, device, shape, &slot);
  }

  void use(std::optional<LaunchTable> table) {
    const std::lock_guard lock(mutex_);
    users_ = std::move(table);
    has_read_ = users_.has_value();
    forget();
  }

 private:
  /// Real and simulated devices count from 0 each.
  static std::size_t place(const Device& device) {
    return static_cast<std::size_t>(device.ordinal()) * 2 + (device.is_simulated() ? 1 : 0);
  }

  int decide(LaunchChoice choice, const Device& device, ChoiceClass shape,
             std::atomic<std::int16_t>* slot = nullptr) noexcept {
    const std::lock_guard lock(mutex_);
    int value = kByRule;
    try {
      value = look_up(choice, device, shape);
    } catch (const std::exception& error) {
      log(LogLevel::warning, "the table of kernels' choices is not used: {}", error.what());
    }
    if (slot != nullptr) slot->store(static_cast<std::int16_t>(value), std::memory_order_relaxed);
    return value;
  }

  int look_up(LaunchChoice choice, const Device& device, ChoiceClass shape) {
    const auto index = static_cast<std::size_t>(choice);
    if (candidates_[index] != 0) return candidates_[index];
    if (is_off()) return kByRule;
    read_once();
    const LaunchChoiceInfo& info = kLaunchChoices[index];
    const std::string within = format("{}/{}", kExtentNames[shape.extent], 1 << shape.size);
    int value = users_ ? number_in(*users_, info, device, within) : kByRule;
    if (value == kByRule) value = number_in(shipped_, info, device, within);
    return value;
  }

  static int number_in(const LaunchTable& table, const LaunchChoiceInfo& info, const Device& device,
                       const std::string& within) {
    const std::string name = format("{}.{}", info.family, info.name);
    const std::string arch = format("sm_{}", device.compute_capability().number());
    for (const std::string& wanted : {device.name(), arch}) {
      const auto device_rows = table.find(wanted);
      if (device_rows == table.end()) continue;
      const auto row = device_rows->second.find(name);
      if (row == device_rows->second.end()) continue;
      const auto value = row->second.find(within);
      if (value == row->second.end()) continue;
      const auto& known = info.candidates;
      if (std::find(known.begin(), known.end(), value->second) != known.end()) return value->second;
    }
    return kByRule;
  }

  static bool is_off() {
    return env_is_set(Env::kernel_choices) && env_text(Env::kernel_choices) == "off";
  }

  /// The user's file, when it is first needed. The caller holds the lock.
  void read_once() {
    if (has_read_) return;
    has_read_ = true;  // a file that cannot be read is told of once
    const std::string path = launch_table_path().string();
    const auto text = path.empty() ? std::nullopt : read_whole_file(path);
    if (text) {
      users_ = parse_launch_table(*text, path);
    } else if (!path.empty() && env_is_set(Env::kernel_choices)) {
      log(LogLevel::warning, "KERNWRIGHT_KERNEL_CHOICES names {}, which cannot be read", path);
    }
  }

  void forget() {
    for (auto& choice_slots : slots_) {
      for (auto& device_rows : choice_slots) {
        for (auto& slot : device_rows) slot.store(kUndecided, std::memory_order_relaxed);
      }
    }
  }

  using Slots = std::array<std::atomic<std::int16_t>, kChoiceExtents * kChoiceSizes>;
  std::array<std::array<Slots, kChoiceDevices>, kLaunchChoices.size()> slots_{};
  std::mutex mutex_;
  std::array<int, kLaunchChoices.size()> candidates_{};  ///< 0: the table or the rule
  bool has_read_ = false;
  std::optional<LaunchTable> users_;
  const LaunchTable shipped_ = parse_launch_table(text::launch_choices_json, "launch_choices.json");
};

ChoiceState& choice_state() {
  static ChoiceState& state = *new ChoiceState;  // kept to the end of the process on purpose
  return state;
}

/// Counts the changes of the tables.
std::atomic<std::uint64_t> table_changes{0};

}  // namespace

class PinnedLaunches {
 public:
  explicit PinnedLaunches(std::span<const LaunchCandidate> candidates)
      : state(choice_state(), candidates) {}
  ChoiceState state;
};

namespace {

thread_local PinnedLaunches* pinned_launches = nullptr;

}  // namespace

std::shared_ptr<PinnedLaunches> pin_launches(std::span<const LaunchCandidate> candidates) {
  for (const auto& [choice, value] : candidates) {
    const LaunchChoiceInfo& info = kLaunchChoices[static_cast<std::size_t>(choice)];
    const auto& known = info.candidates;
    if (std::find(known.begin(), known.end(), value) == known.end())
      throw InvalidArgument(format("{} is no candidate of {}.{}", value, info.family, info.name));
  }
  return std::make_shared<PinnedLaunches>(candidates);
}

void set_pinned_launches(PinnedLaunches* pinned) noexcept { pinned_launches = pinned; }

std::uint64_t launch_table_changes() noexcept { return table_changes.load(); }

std::span<const LaunchChoiceInfo> launch_choices() noexcept { return kLaunchChoices; }

std::string shape_class(ChoiceMeasure measure, std::int64_t extent, std::size_t element) {
  const ChoiceClass shape = choice_class(measure, extent, element);
  return format("{}/{}", kExtentNames[shape.extent], 1 << shape.size);
}

int choose(LaunchChoice choice, const Device& device, std::int64_t extent, std::size_t element,
           int rule) noexcept {
  const ChoiceMeasure measure = kLaunchChoices[static_cast<std::size_t>(choice)].measure;
  ChoiceState& state = pinned_launches != nullptr ? pinned_launches->state : choice_state();
  const int value = state.decided(choice, device, choice_class(measure, extent, element));
  return value > 0 ? value : rule;
}

void use_device_table(std::optional<std::string_view> json) {
  choice_state().use(json ? std::optional(parse_launch_table(*json, "the text")) : std::nullopt);
  ++table_changes;
}

std::filesystem::path launch_table_path() {
  if (env_is_set(Env::kernel_choices)) {
    const std::string path = env_text(Env::kernel_choices);
    return path == "off" ? std::filesystem::path() : std::filesystem::path(path);
  }
  if (env_choice(Env::cache) != "disk") return {};
  const std::string folder = default_cache_directory();
  return folder.empty() ? std::filesystem::path()
                        : std::filesystem::path(folder) / "kernel_choices.json";
}

}  // namespace kernwright::kernels
