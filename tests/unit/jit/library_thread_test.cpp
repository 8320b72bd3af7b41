// A thread inside a library is stopped there, at the exit of the process or when told, each in a
// forked child.
#include "jit/compile/library_thread.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

using kernwright::LibraryThread;

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
      const LibraryThread thread(reinterpret_cast<const void*>(&count_for_ever));
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

TEST_CASE("library thread: a thread inside the library does not run into its clean-up") {
  CHECK(exit_while_counting(true) == 7);
  CHECK(shared()->counted_after_exit == 0);
}

TEST_CASE("library thread: without it the thread runs on") {
  CHECK(exit_while_counting(false) == 7);
  CHECK(shared()->counted_after_exit > 0);
}

TEST_CASE("library thread: nothing happens where the thread has left the library") {
  for (int i = 0; i < 3; ++i) {
    std::thread([] {
      const LibraryThread thread(reinterpret_cast<const void*>(&count_for_ever));
    }).join();
  }
  const pid_t child = ::fork();
  if (child == 0) {
    const LibraryThread thread(
        reinterpret_cast<const void*>(&count_for_ever));  // the exiting thread
    std::exit(3);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 3);
}

namespace {

/// Exit code of a child that runs `part` beside a thread which counts within a library.
template <typename Part>
int beside_counting(Part part) {
  shared()->count = 0;
  const pid_t child = ::fork();
  if (child == 0) {
    static const int task = 0;
    std::thread([] {
      const LibraryThread thread(reinterpret_cast<const void*>(&count_for_ever), &task);
      count_for_ever();
    }).detach();
    while (shared()->count < 1000) std::this_thread::sleep_for(1ms);
    std::_Exit(part(&task));
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("library thread: one is stopped for good, and the rest of the process goes on") {
  CHECK(beside_counting([](const void* task) {
          const int other = 0;
          if (LibraryThread::stop(&other)) return 1;
          if (!LibraryThread::stop(task)) return 2;
          const long before = shared()->count;
          std::this_thread::sleep_for(30ms);
          return shared()->count == before ? 0 : 3;
        }) == 0);
}

TEST_CASE("library thread: its processor time grows until it is stopped") {
  CHECK(beside_counting([](const void* task) {
          const auto used = [&] { return LibraryThread::processor_time(task).value_or(-1ns); };
          const auto first = used();
          while (used() < first + 5ms) std::this_thread::sleep_for(1ms);
          if (first < 0ns || LibraryThread::processor_time(&first)) return 1;
          if (!LibraryThread::stop(task)) return 2;
          const long before = shared()->count;
          const auto last = used();  // the way from the library to its pause is still ahead
          std::this_thread::sleep_for(100ms);
          return shared()->count == before && used() - last < 2ms ? 0 : 3;
        }) == 0);
}

TEST_CASE("library thread: another's handler of the signal stays, and nothing is stopped") {
  CHECK(beside_counting([](const void* task) {
          ::signal(SIGRTMAX - 3, SIG_IGN);
          if (LibraryThread::stop(task)) return 1;
          return ::signal(SIGRTMAX - 3, SIG_DFL) == SIG_IGN ? 0 : 2;
        }) == 0);
}
#endif
