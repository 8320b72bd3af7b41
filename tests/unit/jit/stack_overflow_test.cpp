// Threads that run into the end of their stack, or elsewhere, each in a forked child.
#include "jit/compile/stack_overflow.h"

#include <doctest/doctest.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "jit/compile/library_code.h"

using kernwright::code_around;
using kernwright::watch_stack;

// A sanitizer has its own say about faults.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

using namespace std::chrono_literals;

std::atomic<int> overflows = 0;
volatile int endless = 1;

/// Each call a frame, which the compiler can neither drop nor turn into a loop.
int descend(int depth) {
  volatile char frame[512];
  frame[0] = static_cast<char>(depth);
  if (endless == 0) return depth;
  return descend(depth + 1) + frame[0];
}

/// Counts, and stops the thread, when it was in this program's code.
void stop_thread(std::uintptr_t instruction) {
  if (!code_around(reinterpret_cast<const void*>(&descend)).contains(instruction)) return;
  ++overflows;
  while (true) ::pause();
}

void let_pass(std::uintptr_t) { ++overflows; }

void exit_with_3(int) { ::_exit(3 + overflows); }

/// How a child ends that has its own handler of SIGSEGV, or none, and runs `part`.
template <typename Part>
int status_of(void (*handler)(int), Part part) {
  overflows = 0;
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit none{0, 0};
    ::setrlimit(RLIMIT_CORE, &none);
    ::signal(SIGSEGV, handler);
    std::thread(part).detach();
    std::this_thread::sleep_for(300ms);
    ::_exit(overflows);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

bool ended_by_fault(int status) { return WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV; }

void fault_elsewhere() {
  volatile int* volatile nowhere = nullptr;
  *nowhere = 1;
}

}  // namespace

TEST_CASE("stack overflow: a thread is stopped at the end of its stack, and the process goes on") {
  const int status = status_of(SIG_DFL, [] {
    watch_stack(stop_thread);
    descend(0);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 1);
}

TEST_CASE("stack overflow: many threads, one after the other") {
  const int status = status_of(SIG_DFL, [] {
    for (int i = 0; i < 5; ++i) {
      std::thread([] {
        watch_stack(stop_thread);
        watch_stack(stop_thread);
        descend(0);
      }).detach();
    }
    std::thread([] { watch_stack(stop_thread); }).join();  // ends as it should
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 5);
}

TEST_CASE("stack overflow: what the handler lets pass takes its usual way") {
  CHECK(ended_by_fault(status_of(SIG_DFL, [] {
    watch_stack(let_pass);
    descend(0);
  })));
  const int status = status_of(exit_with_3, [] {
    watch_stack(let_pass);
    descend(0);
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 4);
}

TEST_CASE("stack overflow: other faults, and threads that are not watched, are left alone") {
  CHECK(ended_by_fault(status_of(SIG_DFL, [] {
    watch_stack(stop_thread);
    fault_elsewhere();
  })));
  CHECK(ended_by_fault(status_of(SIG_DFL, [] {
    watch_stack(stop_thread);
    std::thread([] { descend(0); }).join();
  })));
  const int status = status_of(exit_with_3, [] {
    watch_stack(stop_thread);
    fault_elsewhere();
  });
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
}

TEST_CASE("stack overflow: a handler that came later gets what it would have got") {
  const auto status = [](void (*part)()) {
    return status_of(SIG_DFL, [part] {
      watch_stack(stop_thread);
      ::signal(SIGSEGV, exit_with_3);
      watch_stack(stop_thread);
      part();
    });
  };
  CHECK(WEXITSTATUS(status([] { descend(0); })) == 1);
  CHECK(WEXITSTATUS(status(fault_elsewhere)) == 3);
}

TEST_CASE("stack overflow: a handler that sends the signal back ends in no circle") {
  static struct sigaction ours {};
  const auto send_back = [](int signal) {
    ::sigaction(signal, &ours, nullptr);
    ::raise(signal);
  };
  static void (*const handler)(int) = send_back;
  CHECK(ended_by_fault(status_of(SIG_DFL, [] {
    watch_stack(stop_thread);
    struct sigaction later {};
    later.sa_handler = handler;
    later.sa_flags = SA_NODEFER;
    ::sigaction(SIGSEGV, &later, &ours);
    watch_stack(stop_thread);
    fault_elsewhere();
  })));
}
#endif
