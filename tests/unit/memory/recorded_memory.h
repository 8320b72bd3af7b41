// Recorded for tests with arrays of the device's pool, which keeps freed memory.
#pragma once

#include "memory/memory_resource.h"
#include "unit/core/test_device.h"

namespace kernwright::testing {

/// Recorded, with the caches of the default resource of the device empty before and after.
class RecordedMemory {
 public:
  RecordedMemory() : device(test_device()), recorded_(trimmed(device)) {}
  ~RecordedMemory() { default_resource(device)->trim(); }
  RecordedMemory(const RecordedMemory&) = delete;
  RecordedMemory& operator=(const RecordedMemory&) = delete;

  Device& device;

 private:
  struct AfterTrim {
    explicit AfterTrim(int) {}
    Recorded recorded;
  };
  static int trimmed(Device& device) {
    default_resource(device)->trim();
    return 0;
  }
  AfterTrim recorded_;
};

}  // namespace kernwright::testing
