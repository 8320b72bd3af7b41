// Words and values of findings.
#include "sim/check/report/finding_text.h"

#include "base/format.h"
#include "sim/exec/warp/lane_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kernwright::sim {

using ptx::Space;

const char* noun_text(Space space) {
  return space == Space::shared    ? "shared memory"
         : space == Space::cluster ? "another block's shared memory"
         : space == Space::local   ? "local memory"
                                   : "global memory";
}

const char* verb_text(AccessKind mode) {
  return mode == AccessKind::read ? "read" : mode == AccessKind::write ? "write" : "atomic access";
}

std::string act_text(const CheckedOp& info, const std::string& verb) {
  const bool copies =
      info.kind == CheckKind::copy || info.kind == CheckKind::bulk || info.kind == CheckKind::wgmma;
  return copies ? "asynchronous " + verb : verb;
}

const std::byte* host_bytes(const Warp& warp, int lane, const LaneTouch& touch) {
  return try_locate(warp, lane, {touch.space, AccessKind::read, touch.address, touch.bytes, 1});
}

std::string shared_text(const std::array<std::uint32_t, 3>& ctaid) {
  return format("shared memory of block ({}, {}, {})", ctaid[0], ctaid[1], ctaid[2]);
}

std::array<unsigned, 3> coordinates(std::uint32_t linear,
                                    const std::array<std::uint32_t, 3>& shape) {
  return {linear % shape[0], linear / shape[0] % shape[1], linear / shape[0] / shape[1]};
}

std::string hexadecimal(const std::byte* bytes, std::size_t count) {
  std::string text = "0x";
  for (std::size_t i = count; i-- > 0;) {
    text += format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

std::array<std::byte, 16> stored_value(const Op* op, const Warp& warp, const CheckedOp& info,
                                       int lane) {
  std::array<std::byte, 16> value{};
  for (std::uint32_t at = 0; at < info.bytes; at += info.element) {
    const std::uint32_t slot =
        info.element == info.bytes ? op->b : warp.program->lists[op->b + at / info.element];
    const std::byte* const from =
        warp.frame + slot + static_cast<std::size_t>(lane) * info.value_width;
    std::memcpy(value.data() + at, from, std::min(info.element, info.value_width));
  }
  return value;
}

std::string byte_ranges(std::uint64_t bits) {
  std::string text;
  while (bits != 0) {
    const int first = std::countr_zero(bits), count = std::countr_one(bits >> first);
    bits = count == 64 ? 0 : bits & ~(((std::uint64_t{1} << count) - 1) << first);
    text += text.empty() ? "byte" : bits == 0 ? " and " : ", ";
    if (text == "byte") text += count > 1 || bits != 0 ? "s " : " ";
    text += count == 1 ? format("{}", first) : format("{} to {}", first, first + count - 1);
  }
  return text;
}

}  // namespace kernwright::sim
