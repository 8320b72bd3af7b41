// The interface for compiling and running configurations in a session.
#pragma once

#include "jit/compile/compile_wait.h"
#include "tune/session/trial.h"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// A backend's data about a configuration between calls.
class TrialWork {
 public:
  virtual ~TrialWork() = default;
};
using TrialWorkRef = std::shared_ptr<TrialWork>;

struct CompiledTrial {
  std::string code;  ///< hash of the object code
  /// Equal for configurations with the same work on the device: their code and their launch are
  /// equal. Empty: never.
  std::string same_key;
  double compile_s = 0;  ///< the compiler's own time; 0 where a cache had the code
};

struct TrialSamples {
  std::vector<double> times_ms{};
  /// On a device without a clock: the counted cost, equal at each run.
  std::optional<double> cost{};
  std::map<std::string, double> metrics{};  ///< medians of other measured quantities
};

/// Launches of a trial that are verified before its samples, and after them. A kernel that counts
/// its launches, and is right in the first ones or wrong in every third one, must not win.
constexpr unsigned kFirstLaunches = 2, kLastLaunches = 3;

/// trial_failure() makes outcomes of some exceptions of these calls; others end the session.
class TrialBackend {
 public:
  virtual ~TrialBackend() = default;

  /// How many compiles, and how many runs, go on at once.
  virtual unsigned compile_lanes() const = 0;
  virtual unsigned device_lanes() const = 0;
  /// Whether the next run is on a sound device whatever a run did: else the session ends there.
  virtual bool is_isolated() const { return true; }
  /// Whether there is a clock; without one, a single sample with a cost is enough.
  virtual bool has_clock() const = 0;

  /// In the session's thread, before anything else: the texts and the launch of a configuration.
  virtual TrialWorkRef plan(std::uint64_t index) = 0;
  /// In any thread, several at once.
  virtual CompiledTrial compile(TrialWork& work, const WaitLimits& limits) = 0;
  /// In the session's thread, after the compile: its arguments.
  virtual void bind(TrialWork& work) = 0;

  // In the thread of the lane, one after the other.
  /// Starts the device of the lane if it does not run; this time belongs to no configuration.
  virtual void prepare(unsigned lane, const WaitLimits& limits) = 0;
  /// Makes it ready to launch. LaunchConfigError where limits of the device refuse it.
  virtual KernelResources load(unsigned lane, TrialWork& work, const WaitLimits& limits) = 0;
  /// Several launches of the loaded code, each with fresh inputs and a check of the outputs:
  /// returns the first error in them, or nothing.
  virtual std::optional<std::string> verify(unsigned lane, TrialWork& work, unsigned launches,
                                            const WaitLimits& limits) = 0;
  /// Only one sample if it is above `cap_ms` (0: no cap).
  virtual TrialSamples sample(unsigned lane, TrialWork& work, unsigned count, double cap_ms,
                              const WaitLimits& limits) = 0;
};

}  // namespace kernwright
