// The frame of PTX kernels that copy one tile of a tensor map, for modules of hopper_runner.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace kernwright::sim::testing {

constexpr std::uint32_t kTile = 16384;  ///< bytes
inline const std::string kTileShared =
    ".shared .align 1024 .b8 tile[16384];\n.shared .align 8 .b64 bar;\n";

/// %r1 tile, %r2 barrier, %r4 the copy's place, %r5 its bytes, %d1 p0, %d4 the map, %r10 and up the
/// coordinates, %h1 and up im2col's `offsets` offsets, %p1 thread 0.
inline std::string set_up(int rank, int offsets = 0) {
  std::string text = R"(
mov.u32 %r1, tile;
mov.u32 %r2, bar;
setp.eq.u32 %p1, %r0, 0;
@%p1 mbarrier.init.shared::cta.b64 [%r2], 1;
ld.param.u64 %d1, [p0];
ld.param.u32 %r3, [p1];
add.u32 %r4, %r1, %r3;
ld.param.u32 %r5, [p2];
mov.b64 %d4, map;
cvta.param.u64 %d4, %d4;
)";
  for (int i = 0; i < rank; ++i)
    text += "ld.param.u32 %r" + std::to_string(10 + i) + ", [p" + std::to_string(3 + i) + "];\n";
  for (int i = 0; i < offsets; ++i)
    text += "ld.param.u16 %h" + std::to_string(1 + i) + ", [p" + std::to_string(8 + i) + "];\n";
  return text + "bar.sync 0;\n";
}

/// "{%r10, %r11}" for registers("r", 10, 2).
inline std::string registers(const std::string& name, int first, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i)
    text += (i == 0 ? "" : ", ") + ("%" + name) + std::to_string(first + i);
  return text + "}";
}

inline std::string dimension(int rank) { return std::to_string(rank) + "d"; }

/// Does `move` for each word of the tile, [%r7], and its place in p0, [%d5].
inline std::string each_word(const std::string& move) {
  return R"(
mov.u32 %r6, %r0;
NEXT:
mad.lo.u32 %r7, %r6, 4, %r1;
mad.wide.u32 %d5, %r6, 4, %d1;
)" + move +
         R"(
add.u32 %r6, %r6, 32;
setp.lt.u32 %p3, %r6, 4096;
@%p3 bra NEXT;
)";
}
inline const std::string kDump = each_word("ld.shared.u32 %r8, [%r7];\nst.global.u32 [%d5], %r8;");
inline const std::string kFill = each_word("ld.global.u32 %r8, [%d5];\nst.shared.u32 [%r7], %r8;") +
                                 "fence.proxy.async;\nbar.sync 0;\n";
inline const std::string kExpect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r2], %r5;\n";
inline const std::string kWait = R"(
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r2], 0;
@!%p2 bra WAIT;
)";

inline std::vector<std::uint8_t> noise(std::mt19937& random, std::size_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// The tensor load of a mode, "tile" or "im2col".
inline std::string tensor_load(int rank, const std::string& mode) {
  return "cp.async.bulk.tensor." + dimension(rank) + ".shared::cluster.global." + mode +
         ".mbarrier::complete_tx::bytes [%r4], [%d4, " + registers("r", 10, rank) + "], [%r2]" +
         (mode == "im2col" ? ", " + registers("h", 1, rank - 2) : "") + ";\n";
}
/// Thread 0 loads one tile, which goes to p0.
inline std::string load_tile(int rank, const std::string& mode) {
  return set_up(rank, mode == "im2col" ? rank - 2 : 0) + "@!%p1 bra WAIT;\n" + kExpect +
         tensor_load(rank, mode) + kWait + kDump;
}
/// Thread 0 stores the tile that p0 has, or adds it. The mode is "tile" or "im2col_no_offs".
inline std::string store_tile(int rank, const std::string& mode, bool adds) {
  return set_up(rank) + kFill + "@!%p1 bra END;\n" + (adds ? "cp.reduce" : "cp") +
         ".async.bulk.tensor." + dimension(rank) + ".global.shared::cta" + (adds ? ".add." : ".") +
         mode + ".bulk_group [%d4, " + registers("r", 10, rank) +
         "], [%r4];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\nEND:\n";
}

/// The bytes that a map with fills_nan brings from outside the tensor, whatever its type.
inline std::uint8_t nan_byte(std::uint64_t at) { return at % 2 == 0 ? 0xf7 : 0x7f; }

}  // namespace kernwright::sim::testing
