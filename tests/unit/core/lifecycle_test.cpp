// fork and exit: the state of a child after initialisation, and no call of the driver at exit.
#include "core/lifecycle.h"

#include "base/errors.h"
#include "core/device.h"
#include "core/event.h"
#include "core/runtime.h"
#include "unit/core/error_text.h"
#include "unit/core/fake_driver.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>

using namespace kernwright;
using testing::contains;
using testing::FakeDriver;
using testing::message_of;

namespace {

/// Runs `body` in a forked child with its result as exit code; returns this code.
int in_child(const std::function<int()>& body) {
  std::fflush(nullptr);  // else the child writes the buffered text once more
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("fork: after initialisation a child gets a clear error, and destructors do nothing") {
  Device& device = testing::fresh_device();
  watch_process();
  auto stream = std::make_unique<Stream>(Stream::create(device));
  auto event = std::make_unique<Event>(device);
  const int code = in_child([&] {
    if (may_call_driver()) return 1;
    for (const auto& call : std::initializer_list<std::function<void()>>{
             [&] { device.synchronize(); }, [&] { Stream::create(device); },
             [&] { stream->synchronize(); }, [&] { (void)device.memory_info(); },
             [&] { Event made(device); }, [&] { (void)Runtime::get().devices(); }}) {
      const std::string text = message_of<Error>(call);
      if (!contains(text, "before fork()") || !contains(text, "'spawn'")) return 2;
    }
    stream.reset();
    event.reset();
    if (FakeDriver::get().calls("cuStreamDestroy") != 0) return 3;
    if (FakeDriver::get().calls("cuEventDestroy") != 0) return 4;
    return 0;
  });
  CHECK(code == 0);
  CHECK(may_call_driver());
  stream->synchronize();
}

TEST_CASE("exit: objects that are destroyed while the process exits leave the driver alone") {
  Device& device = testing::fresh_device();
  watch_process();
  const int code = in_child([&] {
    // The child is a process of its own, exiting with live objects.
    detail::process_phase = ProcessPhase::running;
    static std::unique_ptr<Stream> stream;
    stream = std::make_unique<Stream>(Stream::create(device));
    std::atexit([] {
      stream.reset();
      if (FakeDriver::get().calls("cuStreamDestroy") != 0) _exit(9);
    });
    // As the library's own handler. It was registered earlier, so it would run later.
    detail::process_phase = ProcessPhase::exiting;
    const std::string text = message_of<Error>([&] { device.synchronize(); });
    if (!contains(text, "exiting")) return 5;
    std::exit(0);
    return 6;
  });
  CHECK(code == 0);
}
