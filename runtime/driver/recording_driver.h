// A decorator of a driver table: records created objects and finds those that are not destroyed.
#pragma once

#include "driver/driver_api.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

/// Counts every call and records each context (primary), module, stream, event, graph, and piece of
/// device or host memory with the context that was current when it was made. One may exist at a
/// time, as the table's functions have no place for an instance; the functions may be called from
/// several threads. After its destruction the table's functions return CUDA_ERROR_DEINITIALIZED.
class RecordingDriver {
 public:
  /// Throws Error when there is another one. `inner` is copied.
  explicit RecordingDriver(const DriverApi& inner);
  ~RecordingDriver();
  RecordingDriver(const RecordingDriver&) = delete;
  RecordingDriver& operator=(const RecordingDriver&) = delete;

  /// The decorated table. Valid for the life of the process.
  const DriverApi& api() const noexcept;

  /// The number of calls of the function of that name ("cuMemAlloc"), failed ones included. Throws
  /// NameNotFound for a name missing in driver_api.def.
  std::uint64_t calls(std::string_view name) const;

  /// How many objects of all kinds were created and not destroyed yet.
  std::size_t live_objects() const;

  /// The errors up to now, one line each: objects destroyed twice or never made, destroyed while
  /// another context was current, used after their context was given back, modules unloaded or
  /// events destroyed in the wrong order, and, as the last lines, every living object. Empty when
  /// all is well.
  std::vector<std::string> check() const;

  /// Forgets problems, counters and objects.
  void reset();
};

}  // namespace kernwright
