// A launch on a device of another process, as plain data.
#pragma once

#include "base/byte_reader.h"
#include "core/kernel.h"
#include "core/launch/launch_config.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace kernwright {

/// Memory of a RemoteDevice: a name for it, which owns nothing and may be copied.
struct RemoteBuffer {
  std::uint64_t id = 0;          ///< 0: none
  std::uint64_t generation = 0;  ///< RemoteDevice::generation() when it was made
  std::uint64_t bytes = 0;       ///< without guard bands
};

/// A kernel loaded on a RemoteDevice, in a module of its own. Owns nothing.
struct RemoteKernel {
  std::uint64_t id = 0;          ///< 0: none
  std::uint64_t generation = 0;  ///< as in RemoteBuffer
  KernelAttributes attributes{};
};

/// One argument: the address of a place in a buffer, or the bytes of a value.
struct RemoteArgument {
  RemoteBuffer buffer{};         ///< with an id: the parameter is a pointer
  std::uint64_t offset = 0;      ///< bytes from the buffer's start, at most its size
  std::vector<std::byte> value;  ///< without a buffer: as many bytes as the parameter has

  static RemoteArgument at(const RemoteBuffer& buffer, std::uint64_t offset = 0) {
    return {buffer, offset, {}};
  }
  template <typename T>
  static RemoteArgument of(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    RemoteArgument argument;
    argument.value.resize(sizeof(T));
    std::memcpy(argument.value.data(), &value, sizeof(T));
    return argument;
  }
  static RemoteArgument null() { return of(std::uint64_t{0}); }
};

struct RemoteLaunch {
  RemoteKernel kernel;
  Dim3 grid{};
  Dim3 block{};
  std::uint32_t shared_bytes = 0;  ///< dynamic shared memory
  Dim3 cluster{0, 0, 0};           ///< blocks of a cluster; 0 = no cluster
  bool cooperative = false;
  std::vector<RemoteArgument> arguments;  ///< one a parameter
};

/// A damaged byte of a guard band.
struct GuardDamage {
  std::int64_t offset = 0;  ///< bytes from the buffer's start: negative in front, >= bytes behind
  std::uint8_t expected = 0, found = 0;
};

/// For requests of tasks; ids travel without generations, which the caller has checked.
void write(ByteWriter& out, const RemoteLaunch& launch);
RemoteLaunch read_remote_launch(ByteReader& in);

}  // namespace kernwright
