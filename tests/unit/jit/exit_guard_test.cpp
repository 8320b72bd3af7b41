// A thread that is inside a library when the process exits is stopped there, in a forked child.
#include "jit/compile/exit_guard.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

using kernwright::ExitGuard;

// A sanitizer has its own say about the exit of a forked child.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

using namespace std::chrono_literals;

/// Memory that parent and child share.
struct Shared {
  std::atomic<long> count = 0;
  std::atomic<long> counted_after_exit = -1;
};

Shared* shared() {
  static Shared* const memory = [] {
    void* pages =
        ::mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    REQUIRE(pages != MAP_FAILED);
    return new (pages) Shared;
  }();
  return memory;
}

/// Stands for a compiler: never leaves this executable's own code.
void count_for_ever() {
  while (true) shared()->count.fetch_add(1, std::memory_order_relaxed);
}

bool is_measuring = false;

/// Stands for the library's own clean-up: how far the thread gets meanwhile.
void measure() {
  if (!is_measuring) return;
  const long before = shared()->count;
  std::this_thread::sleep_for(30ms);
  shared()->counted_after_exit = shared()->count - before;
}

// As a library's: registered when it is loaded, before anything of it is called.
const bool is_registered = std::atexit(measure) == 0;

/// Exit code of a child that ends while a thread counts.
int exit_while_counting(bool is_guarded) {
  shared()->count = 0;
  shared()->counted_after_exit = -1;
  const pid_t child = ::fork();
  if (child == 0) {
    is_measuring = is_registered;
    std::thread([is_guarded] {
      if (!is_guarded) count_for_ever();
      const ExitGuard guard(reinterpret_cast<const void*>(&count_for_ever));
      count_for_ever();
    }).detach();
    while (shared()->count < 1000) std::this_thread::sleep_for(1ms);
    std::exit(7);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("exit guard: a thread inside the library does not run into its clean-up") {
  CHECK(exit_while_counting(true) == 7);
  CHECK(shared()->counted_after_exit == 0);
}

TEST_CASE("exit guard: without it the thread runs on") {
  CHECK(exit_while_counting(false) == 7);
  CHECK(shared()->counted_after_exit > 0);
}

TEST_CASE("exit guard: nothing happens where the thread has left the library") {
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      const ExitGuard guard(reinterpret_cast<const void*>(&count_for_ever));
    }).join();
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const ExitGuard guard(reinterpret_cast<const void*>(&count_for_ever));  // the exiting thread
    std::exit(3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
}
#endif
