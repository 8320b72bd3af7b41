// Bytes that two processes see: an anonymous file, mapped in both.
#pragma once

#include "base/file_system.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace kernwright {

/// Owns the mapping and the file. Pages take memory from their first use on. Movable; empty when
/// default-constructed.
class SharedMemory {
 public:
  SharedMemory() = default;
  /// New memory, zeroed. Throws Error when the system refuses.
  static SharedMemory create(std::uint64_t bytes);
  /// The memory of a descriptor that another process's create() made. Throws Error when it is none.
  static SharedMemory open(FileHandle file);
  ~SharedMemory();
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;

  std::span<std::byte> bytes() const noexcept { return bytes_; }
  int descriptor() const noexcept { return file_.get(); }

 private:
  SharedMemory(FileHandle file, std::uint64_t bytes);

  FileHandle file_;
  std::span<std::byte> bytes_;
};

}  // namespace kernwright
