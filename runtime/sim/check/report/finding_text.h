// Words and values of findings.
#pragma once

#include "sim/check/checked_program.h"
#include "sim/check/race/touch.h"
#include "sim/exec/warp/warp.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace kernwright::sim {

/// "shared memory"
const char* noun_text(ptx::Space space);
/// "read", "write", "atomic access"
const char* verb_text(AccessKind mode);
/// The verb of an instruction, "asynchronous" where it copies.
std::string act_text(const CheckedOp& info, const std::string& verb);
/// "shared memory of block (1, 0, 0)"
std::string shared_text(const std::array<std::uint32_t, 3>& ctaid);
std::array<unsigned, 3> coordinates(std::uint32_t linear,
                                    const std::array<std::uint32_t, 3>& shape);
/// "0x3f800000", most significant byte first.
std::string hexadecimal(const std::byte* bytes, std::size_t count);
/// "bytes 1 to 3 and 7", for the set bits.
std::string byte_ranges(std::uint64_t bits);
/// The bytes of an access, or null where the access itself is a fault.
const std::byte* host_bytes(const Warp& warp, int lane, const LaneTouch& touch);
/// The value stored for `lane`.
std::array<std::byte, 16> stored_value(const Op* op, const Warp& warp, const CheckedOp& info,
                                       int lane);

}  // namespace kernwright::sim
