// Workers of the tests' own program, whose tasks go wrong on request.
#pragma once

#include "base/byte_reader.h"
#include "worker/worker.h"

#include <sys/types.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace worker_test {

inline kernwright::WorkerOptions test_program() { return {.command = {TEST_WORKER_PROGRAM}}; }

/// A request of one 32-bit number.
inline std::vector<std::byte> number(int value) {
  kernwright::ByteWriter out;
  out.i32(value);
  return out.take();
}

inline kernwright::WaitLimits for_ms(int milliseconds) {
  return kernwright::WaitLimits{}.within(std::chrono::milliseconds(milliseconds));
}

/// Whether the process is gone within five seconds (one that nobody waited for counts as gone).
inline bool is_gone(pid_t process) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < end) {
    if (::kill(process, 0) != 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

inline void kill_and_wait(pid_t process) {
  ::kill(process, SIGKILL);
  ::waitpid(process, nullptr, 0);
}

}  // namespace worker_test
