// Runs a piece of a test in a process of its own.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <stdexcept>

namespace kernwright::test {

/// Starts `work` in a child, which ends with its result; no destructor of this process runs there.
inline pid_t start_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child > 0) return child;
  int status = 99;
  try {
    status = work();
  } catch (...) {
    status = 98;
  }
  ::_exit(status);
}

/// Exit status of the child, or -1 when a signal ended it.
inline int wait_for(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, 0) != child) throw std::runtime_error("waitpid failed");
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace kernwright::test
