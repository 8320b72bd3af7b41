// A launch as fields of a message.
#include "worker/device/remote_launch.h"

namespace kernwright {
namespace {

void write(ByteWriter& out, const Dim3& extents) {
  for (const std::uint32_t extent : {extents.x, extents.y, extents.z}) out.u32(extent);
}

Dim3 read_extents(ByteReader& in) {
  Dim3 extents;
  for (std::uint32_t* extent : {&extents.x, &extents.y, &extents.z}) *extent = in.u32();
  return extents;
}

}  // namespace

void write(ByteWriter& out, const RemoteLaunch& launch) {
  out.u64(launch.kernel.id);
  write(out, launch.grid);
  write(out, launch.block);
  write(out, launch.cluster);
  out.u32(launch.shared_bytes);
  out.u8(launch.cooperative ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(launch.arguments.size()));
  for (const RemoteArgument& argument : launch.arguments) {
    out.u64(argument.buffer.id);
    out.u64(argument.offset);
    out.blob(argument.value);
  }
}

RemoteLaunch read_remote_launch(ByteReader& in) {
  RemoteLaunch launch;
  launch.kernel.id = in.u64();
  launch.grid = read_extents(in);
  launch.block = read_extents(in);
  launch.cluster = read_extents(in);
  launch.shared_bytes = in.u32();
  launch.cooperative = in.u8() != 0;
  for (std::uint32_t n = in.u32(); n > 0; --n) {
    RemoteArgument& argument = launch.arguments.emplace_back();
    argument.buffer.id = in.u64();
    argument.offset = in.u64();
    const auto value = in.blob();
    argument.value.assign(value.begin(), value.end());
  }
  return launch;
}

}  // namespace kernwright
