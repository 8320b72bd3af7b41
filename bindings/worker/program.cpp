// kernwright-worker: a worker process. Started by Worker, not by hand.
#include "bindings/worker/entry.h"

#ifdef KERNWRIGHT_EXTENSION
#include <dlfcn.h>
#include <sys/auxv.h>
#include <cstdio>
#include <cstring>

namespace {

using Main = decltype(&kernwright_worker_main);

/// The worker's code is in the Python extension beside this program. It is opened lazily, because
/// this is no Python and has none of the functions that only Python calls.
Main find_main() {
  const auto* const self = reinterpret_cast<const char*>(getauxval(AT_EXECFN));
  const char* const slash = self == nullptr ? nullptr : std::strrchr(self, '/');
  const int folder = slash == nullptr ? 1 : static_cast<int>(slash - self);
  char path[4096];
  const int bytes = std::snprintf(path, sizeof path, "%.*s/" KERNWRIGHT_EXTENSION, folder,
                                  slash == nullptr ? "." : self);
  if (bytes < 0 || bytes >= static_cast<int>(sizeof path)) return nullptr;
  void* const extension = dlopen(path, RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  Main result = nullptr;
  if (extension != nullptr) {
    *reinterpret_cast<void**>(&result) = dlsym(extension, "kernwright_worker_main");
  }
  if (result == nullptr) std::fprintf(stderr, "kernwright: error: a worker: %s\n", dlerror());
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  const Main found = find_main();
  return found == nullptr ? 127 : found(argc, argv);
}
#else
int main(int argc, char** argv) { return kernwright_worker_main(argc, argv); }
#endif
