// dlopen and its kin behind an owning handle.
#include "driver/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include <condition_variable>
#include <cstdlib>
#include <mutex>

#include "base/per_process.h"

namespace kernwright {
namespace {

/// At exit a library that is being opened is waited for this long.
constexpr std::chrono::seconds kPatienceAtExit{5};

struct Openings {
  std::mutex mutex;
  std::condition_variable over;
  int count = 0;
};

/// One thread inside the system's loader.
class Opening {
 public:
  Opening() : all_(per_process<Openings>()) {
    static const bool is_registered = std::atexit([] { wait_for_openings(kPatienceAtExit); }) == 0;
    (void)is_registered;
    const std::lock_guard lock(all_.mutex);
    ++all_.count;
    ++thread_count;
  }
  ~Opening() {
    const std::lock_guard lock(all_.mutex);
    --all_.count;
    --thread_count;
    all_.over.notify_all();
  }
  Opening(const Opening&) = delete;
  Opening& operator=(const Opening&) = delete;

  static thread_local int thread_count;

 private:
  Openings& all_;
};

thread_local int Opening::thread_count = 0;

}  // namespace

bool wait_for_openings(std::chrono::milliseconds patience) noexcept {
  try {
    Openings& all = per_process<Openings>();
    std::unique_lock lock(all.mutex);
    return all.over.wait_for(lock, patience, [&] { return all.count <= Opening::thread_count; });
  } catch (...) {
    return false;
  }
}

SharedLibrary SharedLibrary::open(const std::string& name, std::string& error) {
  const Opening opening;
  void* const handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const message = dlerror();
    error = message != nullptr ? message : "unknown error of the loader";
  }
  return SharedLibrary(handle);
}

SharedLibrary::~SharedLibrary() {
  if (handle_ != nullptr && !stays_) dlclose(handle_);
}

void* SharedLibrary::symbol(const char* name) const noexcept {
  return handle_ != nullptr ? dlsym(handle_, name) : nullptr;
}

std::string SharedLibrary::path() const {
  link_map* map = nullptr;
  if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr)
    return {};
  return map->l_name != nullptr ? map->l_name : "";
}

}  // namespace kernwright
