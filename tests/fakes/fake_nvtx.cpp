// NVTX's library as a tool listens to it: ranges go to the file that FAKE_NVTX_LOG names, one line
// for each begin and end; nobody listens when it names none.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::FILE* log_file = nullptr;
int domain = 0;

void note(const char* what, const char* text) {
  std::fprintf(log_file, "%s %s\n", what, text);
  std::fflush(log_file);
}

}  // namespace

#define FAKE_EXPORT __attribute__((visibility("default")))

extern "C" {

FAKE_EXPORT void* nvtxDomainCreateA(const char* name) {
  const char* const path = std::getenv("FAKE_NVTX_LOG");
  if (path == nullptr) return nullptr;
  log_file = std::fopen(path, "a");
  if (log_file == nullptr) return nullptr;
  note("domain", name);
  return &domain;
}

FAKE_EXPORT int nvtxDomainRangePushEx(void* where, const void* attributes) {
  // Offsets of nvtxEventAttributes_t: version 0, size 2, messageType 32, message 40.
  const auto* bytes = static_cast<const char*>(attributes);
  std::uint16_t head[2];
  std::int32_t type = 0;
  const char* message = nullptr;
  std::memcpy(head, bytes, sizeof(head));
  std::memcpy(&type, bytes + 32, sizeof(type));
  std::memcpy(&message, bytes + 40, sizeof(message));
  const bool is_right = where == &domain && head[0] == 3 && head[1] == 48 && type == 1;
  note(is_right ? "begin" : "wrong", message);
  return 0;
}

FAKE_EXPORT int nvtxDomainRangePop(void* where) {
  note(where == &domain ? "end" : "wrong", "");
  return 0;
}
}
