// A dynamic library that was opened at run time.
#pragma once

#include <chrono>
#include <string>
#include <utility>

namespace kernwright {

/// Owns one reference to a loaded library and gives it back unless keep_open() was called. Movable.
class SharedLibrary {
 public:
  /// Opens `name`: a path, or a name for the system's loader. Symbols stay local to the library.
  /// On failure the result is empty and `error` holds the loader's message.
  static SharedLibrary open(const std::string& name, std::string& error);

  SharedLibrary() = default;
  ~SharedLibrary();
  SharedLibrary(SharedLibrary&& other) noexcept
      : handle_(std::exchange(other.handle_, nullptr)), stays_(other.stays_) {}
  SharedLibrary& operator=(SharedLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(stays_, other.stays_);
    return *this;
  }

  explicit operator bool() const noexcept { return handle_ != nullptr; }

  /// Address of an exported symbol, or null.
  void* symbol(const char* name) const noexcept;

  /// File that the system loaded for it; empty when the system does not say.
  std::string path() const;

  /// Leaves the library loaded for the life of the process; this object still serves.
  void keep_open() noexcept { stays_ = true; }

 private:
  explicit SharedLibrary(void* handle) : handle_(handle) {}

  void* handle_ = nullptr;
  bool stays_ = false;
};

/// Waits until no other thread is opening a library, at most for `patience`; true when none is.
/// To be called before the process exits: exit() runs the destructors of a library while another
/// thread still runs its constructors (seen as a crash in NVRTC's). A handler of atexit() calls it
/// too, but behind those that the constructors have registered by then.
bool wait_for_openings(std::chrono::milliseconds patience) noexcept;

/// Stores `address` in a slot that is a function pointer.
template <typename Result, typename... Parameters>
void set_function(Result (*&slot)(Parameters...), void* address) noexcept {
  slot = reinterpret_cast<Result (*)(Parameters...)>(address);
}

}  // namespace kernwright
