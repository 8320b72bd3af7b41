// The live objects behind a driver table, and wrong uses of them.
#pragma once

#include "driver/driver_types.h"

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace kernwright {

/// One object that a driver made.
struct DriverObject {
  enum class Kind : std::uint8_t {
    module,
    function,
    stream,
    event,
    memory,
    stream_memory,  ///< made by a stream-ordered allocation
    host_memory,
    registration,  ///< host memory that was registered
    pool,
    graph,
    graph_exec,
    array,
    texture,
    surface,
    green_context,
  };

  Kind kind = Kind::module;
  std::uint64_t handle = 0;
  CUcontext context = nullptr;  ///< current when it was made
  const char* made_by = "";     ///< name of the driver's function

  /// "stream 0x55d0 (made by cuStreamCreate on context 0x1000)"
  std::string to_string() const;
};

/// The book that RecordingDriver keeps. Thread-safe.
class DriverRecord {
 public:
  using Kind = DriverObject::Kind;

  void add(const DriverObject& object);
  void add_function(CUfunction function, CUmodule module);
  void retain(CUcontext context, CUdevice device);
  /// A primary context is given back; the last time, nothing of it may be left.
  void release(CUdevice device, const char* by);
  /// A primary context is made anew: all that was in it is gone.
  void reset(CUdevice device);

  /// Takes out what is about to be destroyed; a problem when it is not there or the context
  /// differs.
  std::optional<DriverObject> take(Kind kind, std::uint64_t handle, CUcontext current,
                                   const char* by);

  /// A problem when the object was destroyed. Unknown handles are fine: the default streams and
  /// objects made before the recording.
  void use(Kind kind, std::uint64_t handle, const char* by);

  std::size_t live() const;
  std::vector<std::string> check() const;
  void clear();

 private:
  using Key = std::pair<Kind, std::uint64_t>;
  struct Primary {
    CUcontext context = nullptr;
    int count = 0;
  };

  std::optional<Key> find(Kind kind, std::uint64_t handle) const;
  void remove_functions(std::uint64_t module);

  mutable std::mutex mutex_;
  std::map<Key, DriverObject> live_;
  std::set<Key> dead_;
  std::map<std::uint64_t, std::uint64_t> function_modules_;  ///< function to module
  std::map<CUdevice, Primary> primaries_;
  std::vector<std::string> problems_;
};

}  // namespace kernwright
