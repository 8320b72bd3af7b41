// A process of our own making that may be killed at any moment.
#pragma once

#include "worker/channel.h"

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// A child process could not be started.
class ProcessNotStarted : public Error {
 public:
  using Error::Error;
};

/// Owns a child process and the parent's end of its channel. The child finds its end as descriptor
/// kChannel; its standard input and output are /dev/null, its errors go where ours go. It is in a
/// process group of its own, so that Ctrl-C in a terminal does not reach it. The destructor kills
/// it. A forked child of this process neither owns it nor keeps it alive.
class ChildProcess {
 public:
  static constexpr int kChannel = 3;

  /// Starts command[0] (found through PATH). `environment`: "NAME=value", added to ours or in place
  /// of an equal name. Throws ProcessNotStarted.
  ChildProcess(const std::vector<std::string>& command,
               const std::vector<std::string>& environment);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  Channel& channel() noexcept { return channel_; }
  pid_t id() const noexcept { return id_; }

  /// Its resident bytes; 0 once it has ended.
  std::uint64_t resident_bytes() const;

  /// Ends it at once, and waits up to 20 ms for its end. Does nothing to an ended one.
  void kill() noexcept;

  /// How it ended, waiting at most 200 ms for that: "exit code 3", "signal 11 (Segmentation
  /// fault)"; nothing while it runs.
  std::optional<std::string> ending();
  /// Behind ending(): the exit code of one that left by itself, else -1.
  int exit_code() const noexcept;

 private:
  bool reap(int options) noexcept;

  Channel channel_;
  pid_t id_ = -1;
  pid_t owner_ = -1;
  bool has_ended_ = false;
  int status_ = 0;
};

}  // namespace kernwright
