// A library that takes long to load, as NVRTC does, and ends the process with exit code 66 when it
// finds itself finished before it was made.
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

namespace {

bool is_finished = false;

__attribute__((constructor)) void begin() {
  std::atexit([] { is_finished = true; });
  for (int i = 0; i < 30; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (is_finished) ::_exit(66);
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int fake_answer() { return 42; }
