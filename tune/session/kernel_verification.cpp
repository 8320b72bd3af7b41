// Verified launches of KernelBackend, and which outputs are free.
#include "tune/session/kernel_backend.h"

#include "base/errors.h"
#include "base/format.h"
#include "tune/session/kernel_lane.h"
#include "tune/session/trial_error.h"
#include "worker/device/poison.h"

#include <algorithm>
#include <chrono>
#include <exception>

namespace kernwright {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kPoisonSeed = 0x6b77706f69736f6e;
// A launch on poisoned contents may take this many times as long as one on the given contents, and
// this much more. It may run on: the contents may be a number of iterations.
constexpr int kPoisonedFactor = 10;
constexpr std::chrono::milliseconds kPoisonedLeast{2000};
constexpr std::chrono::seconds kReferencePatience{60};

}  // namespace

std::vector<bool> KernelBackend::free_outputs(const WaitLimits& limits) {
  prepare(0, limits);
  return *free_;
}

void KernelBackend::find_free_outputs(unsigned lane, const WaitLimits& limits) {
  const std::lock_guard held(free_mutex_);
  if (free_) return;
  WaitLimits reference_limits;  // compiles and launches of references have limits of their own
  reference_limits.stop = limits.stop;
  free_ = searched_free_outputs(lane, reference_limits);
}

std::vector<bool> KernelBackend::searched_free_outputs(unsigned lane, const WaitLimits& limits) {
  std::vector<bool> declared;
  for (const TuningBuffer& buffer : options_.buffers) declared.push_back(buffer.is_poisoned);
  // Without isolation a launch on contents of no meaning could end the session.
  if (!options_.check || !is_isolated()) return declared;
  std::vector<std::uint64_t> references = options_.references;
  if (references.empty()) references.push_back(0);
  std::optional<std::vector<bool>> unsure;
  for (const std::uint64_t index : references) {
    std::optional<FreeOutputs> found = trial_free_outputs(lane, index, limits);
    if (found && found->is_sure) return std::move(found->free);
    if (found && !unsure) unsure = std::move(found->free);
  }
  return unsure.value_or(declared);
}

/// What this configuration tells; nothing where it fails.
std::optional<KernelBackend::FreeOutputs> KernelBackend::trial_free_outputs(
    unsigned number, std::uint64_t index, const WaitLimits& limits) {
  TrialWorkRef made;
  try {
    made = plan(index);
    compile(*made, limits.within(kReferencePatience));
    bind(*made);
  } catch (...) {
    if (is_cancelled(std::current_exception())) throw;
    return std::nullopt;  // its trial tells why
  }
  Work& work = static_cast<Work&>(*made);
  std::vector<bool> free(options_.buffers.size(), false);
  const auto begin = Clock::now();
  if (!is_right_on(number, work, free, 0, limits.within(kReferencePatience))) return std::nullopt;
  const auto taken = std::chrono::ceil<std::chrono::milliseconds>(Clock::now() - begin);
  // NaN alone could be left out by a comparison, and half of the random floats are too small to be
  // seen in a sum: both must be without effect.
  const auto is_right = [&](const std::vector<bool>& poisoned) {
    const auto patience = kPoisonedFactor * taken + kPoisonedLeast;
    return is_right_on(number, work, poisoned, 0, limits.within(patience)) &&
           is_right_on(number, work, poisoned, 1, limits.within(patience));
  };
  const std::vector<std::size_t> some = candidates(*lanes_[number], work);
  for (const std::size_t buffer : some) free[buffer] = true;
  const std::vector<std::byte> outputs = lanes_[number]->outputs;
  if (some.empty() || is_right(free)) return FreeOutputs{free};
  free.assign(free.size(), false);
  for (const std::size_t buffer : some) {
    std::vector<bool> alone(free.size(), false);
    alone[buffer] = true;
    // A poisoned buffer has no given contents: who needs them leaves elements out.
    const bool is_poisoned = options_.buffers[buffer].is_poisoned;
    free[buffer] = is_poisoned || (some.size() > 1 && is_right(alone));
  }
  const bool is_sure = std::none_of(some.begin(), some.end(), [&](std::size_t buffer) {
    return !free[buffer] && is_right_unwritten(work, outputs, buffer);
  });
  return FreeOutputs{free, is_sure};
}

/// Whether a launch on such contents ends with right outputs. Its outputs stay in the lane.
bool KernelBackend::is_right_on(unsigned number, Work& work, const std::vector<bool>& poisoned,
                                unsigned turn, const WaitLimits& limits) {
  try {
    load(number, work, limits);
    Lane& lane = *lanes_[number];
    restore(lane, limits);
    poison_outputs(lane, work, poisoned, turn, limits);
    const bool is_right = !outcome(lane, work, limits);
    lane.is_dirty.assign(lane.is_dirty.size(), true);
    return is_right;
  } catch (...) {
    if (is_cancelled(std::current_exception())) throw;
    if (!trial_failure(std::current_exception(), TrialStage::run)) throw;
    return false;
  }
}

/// Written buffers that may be free: those that the last launch changed, and those that the check
/// looks at. Others are inputs without const, whose contents no launch should miss.
std::vector<std::size_t> KernelBackend::candidates(const Lane& lane, const Work& work) const {
  std::vector<std::size_t> found;
  std::span<const std::byte> outputs = lane.outputs;
  for (const std::size_t buffer : work.written) {
    const TuningBuffer& given = options_.buffers[buffer];
    const auto part = outputs.first(given.bytes.size());
    outputs = outputs.subspan(part.size());
    const bool is_changed = !std::equal(part.begin(), part.end(), given.bytes.begin());
    if (given.is_poisoned || given.is_compared || is_changed) found.push_back(buffer);
  }
  return found;
}

/// Whether the check accepts these outputs of a launch with the given contents of a buffer. A
/// kernel that does not write the buffer is right, too, and does not tell whether others need its
/// contents.
bool KernelBackend::is_right_unwritten(const Work& work, std::span<const std::byte> outputs,
                                       std::size_t unwritten) const {
  std::vector<TuningOutput> parts;
  for (const std::size_t buffer : work.written) {
    const auto given = options_.buffers[buffer].bytes;
    parts.push_back({buffer, buffer == unwritten ? given : outputs.first(given.size())});
    outputs = outputs.subspan(given.size());
  }
  return !options_.check(parts);
}

void KernelBackend::poison_outputs(Lane& lane, const Work& work, const std::vector<bool>& poisoned,
                                   unsigned turn, const WaitLimits& limits) {
  for (const std::size_t buffer : work.written) {
    if (!poisoned[buffer]) continue;
    lane.is_dirty[buffer] = true;
    poison(lane.device, lane.buffers[buffer], turn, kPoisonSeed + buffer, limits);
  }
}

std::optional<std::string> KernelBackend::verify(unsigned number, TrialWork& trial,
                                                 unsigned launches, const WaitLimits& limits) {
  Work& work = static_cast<Work&>(trial);
  Lane& lane = *lanes_[number];
  const bool is_first = work.turn == 0;
  // Launches after the first one show wrong outputs and changed const arguments.
  if (!options_.check && work.constant.empty()) launches = is_first ? 1 : 0;
  restore(lane, limits);
  const bool was_pristine = lane.is_pristine;
  std::optional<std::string> wrong = verified_launches(lane, work, launches, limits);
  if (!wrong) return std::nullopt;
  // A wrong kernel may have written anywhere. So may an earlier trial in its samples: then this one
  // is not to blame for its first launches.
  lane.is_dirty.assign(lane.is_dirty.size(), true);
  if (was_pristine || !is_first) return wrong;
  wrong = verified_launches(lane, work, std::max(launches, kFirstLaunches), limits);
  lane.is_dirty.assign(lane.is_dirty.size(), true);
  return wrong;
}

std::optional<std::string> KernelBackend::verified_launches(Lane& lane, Work& work, unsigned count,
                                                            const WaitLimits& limits) {
  for (unsigned launch = 0; launch < count; ++launch) {
    restore(lane, limits);
    if (free_) poison_outputs(lane, work, *free_, work.turn, limits);
    ++work.turn;
    const std::optional<std::string> wrong = outcome(lane, work, limits);
    // After each launch: the next one may put back what this one changed.
    if (const auto changed = changed_constant(lane, work, limits)) return changed;
    if (wrong)
      return work.was_right ? format("{}, in a launch after one that was right", *wrong) : *wrong;
    work.was_right = true;
  }
  return std::nullopt;
}

/// The first buffer behind a pointer to const that has other contents than before the trial.
std::optional<std::string> KernelBackend::changed_constant(Lane& lane, const Work& work,
                                                           const WaitLimits& limits) {
  for (const auto& [buffer, name] : work.constant) {
    const TuningBuffer& given = options_.buffers[buffer];
    if (given.is_poisoned || given.bytes.empty()) continue;
    lane.outputs.resize(std::max(lane.outputs.size(), given.bytes.size()));
    const std::span<std::byte> now = std::span(lane.outputs).first(given.bytes.size());
    lane.device.read(lane.buffers[buffer], now, 0, limits);
    const auto at = std::mismatch(now.begin(), now.end(), given.bytes.begin()).first;
    if (at == now.end()) continue;
    return format("{} is const in the kernel's signature, but its byte {} was changed", name,
                  at - now.begin());
  }
  return std::nullopt;
}

/// Launches it; returns the error in its outputs, if any.
std::optional<std::string> KernelBackend::outcome(Lane& lane, const Work& work,
                                                  const WaitLimits& limits) {
  lane.device.launch(make_launch(lane, work), limits);
  if (!options_.check) return std::nullopt;
  std::size_t bytes = 0;
  for (const std::size_t buffer : work.written) bytes += lane.buffers[buffer].bytes;
  lane.outputs.resize(bytes);
  std::vector<TuningOutput> outputs;
  std::span<std::byte> room = lane.outputs;
  for (const std::size_t buffer : work.written) {
    const auto part = room.first(lane.buffers[buffer].bytes);
    room = room.subspan(part.size());
    lane.device.read(lane.buffers[buffer], part, 0, limits);
    outputs.push_back({buffer, part});
  }
  return options_.check(outputs);
}

}  // namespace kernwright
