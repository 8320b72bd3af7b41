// Address windows, bounds and the messages about wrong accesses.
#include "sim/exec/warp/lane_memory.h"

#include "base/format.h"
#include "sim/exec/block/cluster.h"
#include "sim/exec/warp/access_log.h"
#include "sim/exec/watcher.h"

#include <algorithm>
#include <string>

namespace kernwright::sim {
namespace {

using ptx::Space;

/// Memory around an address. Offset 0 is at `host`; global memory has no such place.
struct Region {
  Space space = Space::generic;
  std::byte* host = nullptr;
  std::uint64_t offset = 0;  ///< address within the space
  std::uint64_t bytes = 0;
  bool writable = true;
  bool in_cluster = false;  ///< shared memory of any block of the cluster
};

Region find_region(const Warp& warp, int lane, Space space, std::uint64_t address) noexcept {
  Region region{.space = space, .offset = address};
  if (space == Space::generic) {
    region.space = window_space(address);
    if (region.space != Space::global) region.offset = address & ~kWindowMask;
    region.in_cluster = region.space == Space::shared && region.offset >> kRankShift != 0 &&
                        warp.block->member->cluster->members.size() > 1;
  } else if (space == Space::cluster) {
    region.space = Space::shared;
    region.in_cluster = true;
  }
  switch (region.space) {
    case Space::shared:
      region.host = warp.shared;
      region.bytes = warp.shared_bytes;
      if (warp.reserved_shared != 0 && region.offset >= warp.reserved_shared)
        region.bytes = warp.reserved_shared + kReservedSharedBytes;
      break;
    case Space::local:
      region.host = warp.local + static_cast<unsigned>(lane) * warp.local_bytes;
      region.bytes = warp.local_bytes;
      break;
    case Space::param:
      region.host = const_cast<std::byte*>(warp.worker->launch->parameters);
      region.bytes = warp.worker->launch->parameter_bytes;
      region.writable = false;
      break;
    default: break;
  }
  return region;
}

const char* space_name(Space space) noexcept {
  switch (space) {
    case Space::shared: return "shared memory";
    case Space::local: return "local memory";
    case Space::param: return "kernel parameters";
    default: return "global memory";
  }
}

std::string access_text(const LaneAccess& access) {
  const char* verb = access.kind == AccessKind::read    ? "read"
                     : access.kind == AccessKind::write ? "write"
                                                        : "atomic access";
  return format("{} of {} byte{}", verb, access.size, access.size == 1 ? "" : "s");
}

/// Addresses of windows have 32 bits: one before the first byte is a negative offset.
std::int64_t signed_offset(std::uint64_t offset) {
  return offset >> 31 == 1 ? static_cast<std::int32_t>(static_cast<std::uint32_t>(offset))
                           : static_cast<std::int64_t>(offset);
}

/// The program's address for one as seen from the block.
std::uint64_t address_in_program(const Warp& warp, std::uint64_t address) {
  if (!warp.in_cluster) return address;
  const std::uint64_t rank = address >> kRankShift & kRankMask;
  if (rank == 0) return address | warp.rank_bits;
  return rank <= kRankLimit ? address - (std::uint64_t{1} << kRankShift) : address;
}

/// Finds `access` outside global memory, in a region with a size of its own.
const Op* report_region(const Op* op, Warp& warp, int lane, const LaneAccess& access,
                        const Region& region) {
  const auto what = access_text(access);
  const std::uint64_t address =
      region.space == Space::shared ? address_in_program(warp, access.address) : access.address;
  std::string why;
  if (region.in_cluster &&
      cluster_address(*warp.block, region.offset, access.size, &why) == nullptr)
    return warp.fault(op, FaultKind::bounds, lane, address, access.size,
                      format("{} in the shared memory of a cluster: {}", what, why));
  const std::string other = region.space == Space::shared && !region.in_cluster
                                ? other_block_at(*warp.block, region.offset)
                                : std::string();
  if (!other.empty())
    return warp.fault(op, FaultKind::bounds, lane, address, access.size,
                      format("{} in the block's own shared memory at an address of {}: only "
                             ".shared::cluster and generic accesses reach it",
                             what, other));
  if (!region.in_cluster &&
      (region.offset > region.bytes || access.size > region.bytes - region.offset))
    return warp.fault(op, FaultKind::bounds, lane, address, access.size,
                      format("{} in {} of {} bytes: offset {} is out of bounds", what,
                             space_name(region.space), region.bytes, signed_offset(region.offset)));
  if (!region.writable && access.kind != AccessKind::read)
    return warp.fault(op, FaultKind::bounds, lane, address, access.size,
                      format("{} in {}, which are read-only, at offset {}", what,
                             space_name(region.space), region.offset));
  return warp.fault(op, FaultKind::alignment, lane, address, access.size,
                    format("{} in {} at offset {}, which is not a multiple of {}", what,
                           space_name(region.space), region.offset, access.alignment));
}

std::string out_of_bounds_text(const LaneAccess& access) {
  constexpr std::uint64_t kNullPage = 1 << 20;
  const auto what = access_text(access);
  if (access.address == 0) return format("{} at a null pointer", what);
  if (access.address < kNullPage)
    return format("{} at null pointer plus {} (address {:#x})", what, access.address,
                  access.address);
  if ((access.address & kWindowMask) == kFunctionWindow)
    return format("{} at {:#x}, which is the address of a function", what, access.address);
  return format("{} at {:#x} is out of bounds", what, access.address);
}

const Op* report_global(const Op* op, Warp& warp, int lane, const LaneAccess& access) {
  const Memory& memory = *warp.worker->launch->memory;
  const auto what = access_text(access);
  bool writable = true;
  const AddressRange range = memory.find(access.address, &writable);
  FaultKind kind = FaultKind::bounds;
  std::string message;
  bool freed = false;
  std::string place = memory.describe(access.address, access.size, &freed);
  if (!range.contains(access.address, access.size)) {
    message = out_of_bounds_text(access);
    if (freed) {
      kind = FaultKind::use_after_free;
      message = format("{} at {:#x}, in memory that was freed", what, access.address);
    }
  } else if (!writable && access.kind != AccessKind::read) {
    message = format("{} at {:#x}, in read-only memory", what, access.address);
  } else {
    kind = FaultKind::alignment;
    message = format("{} at {:#x}, which is not a multiple of {}", what, access.address,
                     access.alignment);
  }
  warp.fault(op, kind, lane, access.address, access.size, std::move(message));
  warp.block->fault.allocation = std::move(place);
  return nullptr;
}

}  // namespace

Space window_space(std::uint64_t address) noexcept {
  switch (address & kWindowMask) {
    case kSharedWindow: return Space::shared;
    case kLocalWindow: return Space::local;
    case kParamWindow: return Space::param;
    default: return Space::global;
  }
}

std::uint64_t seen_from_block(const Warp& warp, Space space, std::uint64_t address) noexcept {
  if (!warp.in_cluster) return address;
  if (space == Space::generic) space = window_space(address);
  if (space != Space::shared && space != Space::cluster) return address;
  const std::uint64_t rank = address & kRankMask << kRankShift;
  if (rank == warp.rank_bits) return address - rank;
  return rank >> kRankShift < kRankLimit ? address + (std::uint64_t{1} << kRankShift) : address;
}

std::byte* try_locate(const Warp& warp, int lane, const LaneAccess& access) noexcept {
  const Region region = find_region(warp, lane, access.space, access.address);
  const bool write = access.kind != AccessKind::read;
  if (region.offset % access.alignment != 0) return nullptr;
  if (region.in_cluster) return cluster_address(*warp.block, region.offset, access.size);
  if (region.host == nullptr && region.space != Space::shared && region.space != Space::local &&
      region.space != Space::param) {
    bool writable = true;
    const AddressRange range = warp.worker->launch->memory->find(access.address, &writable);
    if (!range.contains(access.address, access.size) || range.begin == range.end) return nullptr;
    return write && !writable ? nullptr : host_pointer(access.address);
  }
  if (region.offset > region.bytes || access.size > region.bytes - region.offset) return nullptr;
  return write && !region.writable ? nullptr : region.host + region.offset;
}

const Op* report_access(const Op* op, Warp& warp, int lane, const LaneAccess& access) {
  const Region region = find_region(warp, lane, access.space, access.address);
  const bool windowed =
      region.space == Space::shared || region.space == Space::local || region.space == Space::param;
  return windowed ? report_region(op, warp, lane, access, region)
                  : report_global(op, warp, lane, access);
}

std::byte* locate(const Op* op, Warp& warp, int lane, const LaneAccess& access) {
  std::byte* const host = try_locate(warp, lane, access);
  if (host == nullptr) {
    report_access(op, warp, lane, access);
  } else if (warp.worker->launch->accesses != nullptr &&
             find_region(warp, lane, access.space, access.address).host == nullptr) {
    note_access(warp, access.kind, access.address, access.size);
  }
  Watcher* const check = warp.worker->check;
  if (host != nullptr && check != nullptr) check->located(op, warp, lane, access);
  return host;
}

void note_access(const Warp& warp, AccessKind kind, std::uint64_t address, std::uint64_t size) {
  warp.worker->launch->accesses->note(address, size, kind);
}

std::uint64_t accessible_bytes(const Warp& warp, int lane, std::uint64_t address,
                               std::uint64_t limit) noexcept {
  const Region region = find_region(warp, lane, Space::generic, address);
  std::uint64_t available = 0;
  if (region.space == Space::global) {
    const AddressRange range = warp.worker->launch->memory->find(address);
    if (range.contains(address, 1)) available = range.end - address;
  } else if (region.offset < region.bytes) {
    available = region.bytes - region.offset;
  }
  return std::min(available, limit);
}

bool is_local_shared(const Warp& warp, std::uint64_t address) {
  const std::uint64_t tag = address >> kRankShift & kRankMask;
  return tag == 0 || tag == std::uint64_t{warp.block->member->rank} + 1;
}

bool is_constant(const Warp& warp, std::uint64_t address) {
  return warp.worker->launch->memory->is_constant(address);
}

}  // namespace kernwright::sim
