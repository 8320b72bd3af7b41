// Opening libraries, and the end of a process while one is being opened.
#include "driver/shared_library.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

using kernwright::SharedLibrary;
using kernwright::wait_for_openings;
using namespace std::chrono_literals;

TEST_CASE("shared library: a symbol, its path, and what cannot be opened") {
  std::string error;
  const SharedLibrary library = SharedLibrary::open(FAKE_NVRTC, error);
  REQUIRE(library);
  CHECK(error.empty());
  CHECK(library.symbol("nvrtcVersion") != nullptr);
  CHECK(library.symbol("nobody") == nullptr);
  CHECK(library.path() == FAKE_NVRTC);
  CHECK_FALSE(SharedLibrary::open("/nowhere/libnobody.so", error));
  CHECK(error.find("libnobody.so") != std::string::npos);
  CHECK(SharedLibrary().symbol("nvrtcVersion") == nullptr);
  CHECK(SharedLibrary().path().empty());
}

TEST_CASE("shared library: an opening in another thread is waited for") {
  CHECK(wait_for_openings(0ms));
  std::atomic<bool> has_begun = false;
  std::thread opener([&] {
    std::string error;
    has_begun = true;
    SharedLibrary library = SharedLibrary::open(FAKE_SLOW, error);
    CHECK(library.symbol("fake_answer") != nullptr);
  });
  while (!has_begun) std::this_thread::yield();
  bool was_seen = false;
  const auto deadline = std::chrono::steady_clock::now() + 250ms;  // it takes 300
  while (!was_seen && std::chrono::steady_clock::now() < deadline) {
    was_seen = !wait_for_openings(0ms);
  }
  CHECK(was_seen);
  CHECK(wait_for_openings(10s));
  opener.join();
}

// A sanitizer has its own say about the exit of a forked child.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {

/// Exit code of a child with a thread that opens the slow library at the end of the process.
int end_while_opening(bool waits) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([] {
      std::string error;
      SharedLibrary::open(FAKE_SLOW, error).keep_open();
    }).detach();
    std::this_thread::sleep_for(100ms);
    if (waits) wait_for_openings(10s);
    std::exit(7);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("shared library: a process that waits ends well while one is opened") {
  CHECK(end_while_opening(true) == 7);
  CHECK(end_while_opening(false) == 66);  // its exit code without a wait
}
#endif
