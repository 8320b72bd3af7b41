// dlopen and its kin behind an owning handle.
#include "driver/shared_library.h"

#include <dlfcn.h>
#include <link.h>

namespace kernwright {

SharedLibrary SharedLibrary::open(const std::string& name, std::string& error) {
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
