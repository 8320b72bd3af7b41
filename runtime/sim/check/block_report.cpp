// The wording of what a block's checks found.
#include "base/format.h"
#include "sim/check/block_check.h"
#include "sim/check/poison.h"
#include "sim/code/program.h"
#include "sim/exec/cluster.h"
#include "sim/exec/lane_memory.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kernwright::sim {
namespace {

using ptx::Space;

const char* noun_of(Space space) {
  return space == Space::shared    ? "shared memory"
         : space == Space::cluster ? "another block's shared memory"
         : space == Space::local   ? "local memory"
                                   : "global memory";
}

const char* verb_of(AccessKind mode) {
  return mode == AccessKind::read ? "read" : mode == AccessKind::write ? "write" : "atomic access";
}

/// The same of an instruction that copies.
std::string what_of(const CheckedOp& info, const std::string& verb) {
  const bool copies =
      info.kind == CheckKind::copy || info.kind == CheckKind::bulk || info.kind == CheckKind::wgmma;
  return copies ? "asynchronous " + verb : verb;
}

/// The bytes, or null where the access itself is a fault.
const std::byte* host_bytes(const Warp& warp, int lane, const LaneTouch& touch) {
  return try_locate(warp, lane, {touch.space, AccessKind::read, touch.address, touch.bytes, 1});
}

/// "shared memory of block (1, 0, 0)"
std::string shared_memory_of(const std::array<std::uint32_t, 3>& ctaid) {
  return format("shared memory of block ({}, {}, {})", ctaid[0], ctaid[1], ctaid[2]);
}

std::array<unsigned, 3> coordinates(std::uint32_t linear,
                                    const std::array<std::uint32_t, 3>& shape) {
  return {linear % shape[0], linear / shape[0] % shape[1], linear / shape[0] / shape[1]};
}

/// "0x3f800000", most significant byte first.
std::string hexadecimal(const std::byte* bytes, std::size_t count) {
  std::string text = "0x";
  for (std::size_t i = count; i-- > 0;) {
    text += format("{:02x}", std::to_integer<unsigned>(bytes[i]));
  }
  return text;
}

/// What a store writes for `lane`.
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

/// "bytes 1 to 3 and 7".
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

constexpr const char* kSameHint =
    "two lanes of one instruction write the same place: let one of them do it, give each a place "
    "of its own, or use an atomic operation";
constexpr const char* kWarpHint =
    "lanes of a warp do not run in lockstep: put __syncwarp() between the two accesses";
constexpr const char* kBlockHint =
    "put __syncthreads() between the two accesses, or make them atomic";
constexpr const char* kCopyHint =
    "the copy may still be under way: its thread waits for it (cp.async.wait_group, "
    "__pipeline_wait_prior(), or an mbarrier that tracks it), then __syncthreads() tells the "
    "others";
constexpr const char* kBulkHint =
    "the copy may still be under way: wait for the phase of the mbarrier that is told of its bytes "
    "(mbarrier.try_wait, cuda::barrier) before the access, in each thread that a barrier does not "
    "tell";
constexpr const char* kStoreHint =
    "the copy may still be under way: its thread waits for it (cp.async.bulk.wait_group, or "
    "wait_group.read where only the source matters), then a barrier tells the others";
constexpr const char* kSendHint =
    "the copy may still read its tile: a thread of the block that gets it waits for the mbarrier's "
    "phase, then tells the one that writes (cluster.sync(), or an mbarrier of this block)";
constexpr const char* kProductHint =
    "the multiplication may still read: wgmma.wait_group first, then a barrier or an mbarrier";
constexpr const char* kProxyHint =
    "asynchronous copies and wgmma see what threads wrote after fence.proxy.async: let the threads "
    "that wrote execute it before the barrier";
constexpr const char* kMapHint =
    "tensor copies see a map that threads changed after fence.proxy.tensormap::generic.acquire: "
    "let "
    "a thread of the block execute it for the map's 128 bytes before the copy";
constexpr const char* kClusterHint =
    "put cluster.sync() (barrier.cluster.arrive and wait) between the two accesses, or an mbarrier";
constexpr const char* kScopeHint =
    "operations of block scope are atomic for threads of one block only: take device scope "
    "(atomicAdd() in place of atomicAdd_block(), thread_scope_device)";
constexpr const char* kGridHint =
    "blocks run in any order: use atomics, a flag with __threadfence() on both sides, grid.sync() "
    "of a cooperative launch, or a kernel of its own for what comes after";

}  // namespace

/// What to wait for before an access that meets an asynchronous operation: one that wrote shared
/// memory (`to_shared`), or one that an mbarrier is told of (`tells`).
static const char* wait_hint(const CheckedOp* op, bool to_shared, bool tells, bool global) {
  const CheckKind kind = op == nullptr ? CheckKind::copy : op->kind;
  return kind == CheckKind::wgmma         ? kProductHint
         : kind == CheckKind::copy        ? kCopyHint
         : to_shared || (tells && global) ? kBulkHint
         : tells                          ? kSendHint
                                          : kStoreHint;
}

Finding BlockCheck::describe(const Op* op, const Warp& warp, int lane, FaultKind kind) const {
  const Program& program = *warp.program;
  const Place& place = program.places[warp.op_index(op)];
  Finding finding;
  FaultReport& fault = finding.fault;
  fault.kind = kind;
  fault.kernel = program.functions[warp.worker->launch->function].name;
  const ptx::SourceLine source = warp.source_of(op, lane);
  const auto file = static_cast<std::size_t>(source.file);
  if (file < program.module->files.size()) fault.file = program.module->files[file];
  fault.line = source.line;
  fault.ptx_line = place.ptx_line;
  fault.opcode = std::string(place.opcode);
  fault.block = {ctaid_[0], ctaid_[1], ctaid_[2]};
  const auto l = static_cast<std::size_t>(lane);
  fault.thread = {warp.tid[0][l], warp.tid[1][l], warp.tid[2][l]};
  return finding;
}

/// Where the other access or barrier is, at that op.
OtherAccess BlockCheck::describe_other(std::uint32_t op) const {
  FaultPlace place = launch_.program.program.place_of(op);
  OtherAccess there;
  there.line = place.line;
  there.ptx_line = place.ptx_line;
  there.opcode = std::move(place.opcode);
  there.file = std::move(place.file);
  return there;
}

void BlockCheck::keep(std::uint64_t key, Finding&& finding) {
  const auto [known, is_new] = found_.try_emplace(key, std::move(finding));
  if (is_new) return;
  finding.count = known->second.count;
  known->second = std::move(finding);
}

bool BlockCheck::seen(std::uint64_t key, Breadth breadth) {
  const auto known = found_.find(key);
  if (known == found_.end()) return false;
  ++known->second.count;
  return known->second.breadth >= breadth;
}

void BlockCheck::report_uninitialised(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                                      std::uint64_t bits) {
  const std::uint64_t key = std::uint64_t{1} << 62 | warp.op_index(op);
  const std::byte* const bytes = host_bytes(warp, lane, touch);
  if (bytes == nullptr || seen(key)) return;
  Finding finding = describe(op, warp, lane, FaultKind::init);
  finding.what = what_of(ops[warp.op_index(op)], verb_of(touch.mode));
  finding.space = noun_of(touch.space);
  FaultReport& fault = finding.fault;
  fault.address = touch.address;
  fault.access_size = touch.bytes;
  finding.value = hexadecimal(bytes, touch.bytes);
  const bool global = touch.space == Space::global;
  const bool partly = std::popcount(bits) < static_cast<int>(touch.bytes);
  fault.message = format(
      "{} of {} bytes of {} at {}{:#x}{}", finding.what, touch.bytes,
      touch.owner != nullptr ? "the " + shared_memory_of(touch.owner->ctaid_) : finding.space,
      global ? "" : "offset ", global ? touch.address : touch.address & kOffsetMask,
      partly ? format(", of which nothing has written {}", byte_ranges(bits))
             : " that nothing has written");
  if (global) {
    fault.allocation = warp.worker->launch->memory->describe(touch.address, touch.bytes);
    finding.hint =
        "fresh device memory holds anything: fill it (memset, a copy, zeros() in place "
        "of empty()) or let a kernel write it first";
  } else if (touch.space == Space::shared || touch.space == Space::cluster) {
    finding.hint =
        "shared memory holds anything when a block begins: is every element written, "
        "also by the last, partial block, before it is read, and every copy to it waited for?";
  } else {
    finding.hint = "the local variable or array is read before it is assigned";
  }
  if (partly) {
    finding.hint +=
        "; where these bytes are padding of a structure, compare and combine its members alone, or "
        "set it to zero as a whole first";
  }
  keep(key, std::move(finding));
}

bool BlockCheck::same_value(const Access& access, Cell other) const {
  if (access.info.kind != CheckKind::store) return false;
  // What an atomic operation left is right by this order alone: in another it adds to the store.
  if ((other & kStrong) != 0 && (other & kVolatileWrite) == 0) return false;
  const LaneTouch& touch = access.touch;
  const std::array<std::byte, 16> mine =
      stored_value(access.op, access.warp, access.info, access.lane);
  const std::uint64_t begin = std::max(touch.address, access.begin);
  const std::uint64_t end = std::min(touch.address + touch.bytes, access.begin + 4);
  const auto at = static_cast<std::size_t>(begin - touch.address);
  const auto count = static_cast<std::size_t>(end - begin);
  const std::uint32_t thread = thread_of(other);
  const auto lane = static_cast<int>(thread % kLanes);
  const bool same_instruction = thread / kLanes == access.warp.index && tick_of(other) == tick_ &&
                                site_of(other) == access.info.site &&
                                (access.warp.mask >> lane & 1) != 0 && touch.addresses != nullptr;
  if (same_instruction && touch.addresses[lane] == touch.addresses[access.lane]) {
    const auto theirs = stored_value(access.op, access.warp, access.info, lane);
    return std::memcmp(mine.data() + at, theirs.data() + at, count) == 0;
  }
  LaneTouch there = touch;
  there.address = begin;
  there.bytes = static_cast<std::uint32_t>(count);
  const std::byte* const memory = host_bytes(access.warp, access.lane, there);
  return memory == nullptr || std::memcmp(mine.data() + at, memory, count) == 0;
}

/// How far away the other access is; one of several readers: the farthest of them that there is.
Breadth BlockCheck::breadth_of(const Access& access, Cell other, Told told) const {
  const std::uint32_t owner = access.mixed ? launch_.ticks.owner(tick_of(other)) : block_;
  if (told == Told::one_of_several) {
    if ((other & kManyBlocks) != 0) return access.global ? Breadth::grid : Breadth::cluster;
    if (owner == block_) return (other & kManyWarps) != 0 ? Breadth::block : Breadth::warp;
  }
  if (owner != block_)
    return cluster_of(owner) == cluster_of(block_) ? Breadth::cluster : Breadth::grid;
  return thread_of(other) / kLanes == access.warp.index ? Breadth::warp : Breadth::block;
}

void BlockCheck::report_race(const Access& access, Cell other, bool other_wrote, Missing missing,
                             Told told) {
  other_wrote = other_wrote && !is_load(other);
  // The end of a copy that an mbarrier told others.
  const bool by_copy =
      other_wrote && missing == Missing::order && !access.global && (other & kAsync) != 0;
  const Breadth breadth =
      missing != Missing::order || by_copy ? Breadth::copy : breadth_of(access, other, told);
  const std::uint64_t key = std::uint64_t{access.info.site} << 16 | site_of(other) << 1 |
                            std::uint64_t{other_wrote} | std::uint64_t{1} << 61;
  const LaneTouch& touch = access.touch;
  const std::byte* const memory = host_bytes(access.warp, access.lane, touch);
  if (memory == nullptr || seen(key, breadth)) return;
  Finding finding = describe(access.op, access.warp, access.lane, FaultKind::race);
  finding.breadth = breadth;
  FaultReport& fault = finding.fault;
  finding.what = what_of(access.info, verb_of(touch.mode));
  finding.space = noun_of(touch.space);
  fault.address = touch.address;
  fault.access_size = touch.bytes;
  const std::uint32_t site = site_of(other);
  const CheckedOp* const other_op = op_at(site);
  OtherAccess there;
  if (other_op != nullptr) there = describe_other(launch_.program.site_ops[site]);
  const std::uint32_t owner = access.mixed ? launch_.ticks.owner(tick_of(other)) : block_;
  const auto& grid = access.warp.worker->launch->grid;
  const auto& shape = access.warp.worker->launch->block;
  there.block = coordinates(owner, grid);
  const std::uint32_t thread = thread_of(other);
  there.thread = coordinates(thread, shape);
  there.what = !other_wrote                    ? "read"
               : (other & kStrong) == 0        ? "write"
               : (other & kVolatileWrite) != 0 ? "volatile write"
                                               : "atomic access";
  if (other_op != nullptr) there.what = what_of(*other_op, there.what);
  // Nobody has written since the other access, so memory still holds what it wrote or read. It may
  // have touched fewer bytes.
  std::size_t skip = access.begin > touch.address ? access.begin - touch.address : 0;
  std::size_t width = touch.bytes;
  if (other_op != nullptr && other_op->bytes != 0 && other_op->bytes < width) {
    width = other_op->bytes;
    skip = width < 4 ? skip + static_cast<unsigned>(std::countr_zero(bytes_of(other) | 8u))
                     : skip / width * width;
    skip = std::min(skip, touch.bytes - width);
  } else {
    skip = 0;
  }
  if (told != Told::hidden) there.value = hexadecimal(memory + skip, width);
  if (access.info.kind == CheckKind::store) {
    const auto value = stored_value(access.op, access.warp, access.info, access.lane);
    finding.value = hexadecimal(value.data(), touch.bytes);
    const auto lane = static_cast<int>(thread % kLanes);
    if (other_wrote && owner == block_ && tick_of(other) == tick_ && site == access.info.site &&
        thread / kLanes == access.warp.index && (access.warp.mask >> lane & 1) != 0) {
      there.value =
          hexadecimal(stored_value(access.op, access.warp, access.info, lane).data(), touch.bytes);
    }
  } else if (touch.mode == AccessKind::read && !access.is_late) {
    finding.value = hexadecimal(memory, touch.bytes);
  }
  there.thread_known = told != Told::one_of_several && !by_copy;
  const char* const where = by_copy ? "a copy and a thread that did not wait for it"
                            : breadth == Breadth::warp    ? "two lanes of one warp"
                            : breadth == Breadth::block   ? "two warps of one block"
                            : breadth == Breadth::cluster ? "two blocks of one cluster"
                                                          : "two blocks";
  const std::uint64_t shown = access.global ? touch.address : touch.address & kOffsetMask;
  fault.message =
      format("{} and {} of the same {} at {}{:#x}", there.what, finding.what,
             touch.owner != nullptr ? shared_memory_of(touch.owner->ctaid_) : finding.space,
             access.global ? "" : "offset ", shown);
  fault.message += missing == Missing::wait ? ", and nothing waits for the end of it in between"
                   : missing == Missing::proxy_fence ? ", and no proxy fence lies between them"
                   : missing == Missing::map_fence
                       ? ", as a tensor map, and no proxy fence of tensor maps lies between them"
                       : format(" by {}, and nothing orders them", where);
  const bool out_of_reach = access.info.strong && other_op != nullptr && other_op->strong &&
                            std::min(access.info.reach, other_op->reach) < reach_to(owner);
  const bool same_instruction = breadth == Breadth::warp && other_wrote &&
                                touch.mode == AccessKind::write && site == access.info.site &&
                                tick_of(other) == tick_ &&
                                thread != access.warp.thread(access.lane);
  const bool tells = there.opcode.find("mbarrier") != there.opcode.npos;
  finding.hint = missing == Missing::proxy_fence ? kProxyHint
                 : missing == Missing::map_fence ? kMapHint
                 : missing == Missing::wait || by_copy
                     ? wait_hint(other_op, other_wrote && !access.global, tells, access.global)
                 : out_of_reach                ? kScopeHint
                 : same_instruction            ? kSameHint
                 : breadth == Breadth::warp    ? kWarpHint
                 : breadth == Breadth::block   ? kBlockHint
                 : breadth == Breadth::cluster ? kClusterHint
                                               : kGridHint;
  if (access.global) {
    fault.allocation = access.warp.worker->launch->memory->describe(touch.address, touch.bytes);
  }
  finding.other = std::move(there);
  keep(key, std::move(finding));
}

/// The visitor's: an access to shared memory of a block that may not have begun, or may be over.
void BlockCheck::report_visit(const Visit& visit, BlockCheck& owner, bool begun) {
  const Warp& warp = *visit.warp;
  const std::uint64_t key = std::uint64_t{5} << 60 | std::uint64_t{begun} << 32 | visit.op;
  if (seen(key)) return;
  Finding finding = describe(warp.code + visit.op, warp, visit.lane, FaultKind::race);
  finding.what = what_of(ops[visit.op], verb_of(visit.touch.mode));
  finding.space = noun_of(Space::cluster);
  finding.fault.address = visit.touch.address;
  finding.fault.access_size = visit.touch.bytes;
  finding.fault.message =
      format("{} of {} bytes of the {} at offset {:#x}, {}", finding.what, visit.touch.bytes,
             shared_memory_of(owner.ctaid_), visit.touch.address & kOffsetMask,
             begun ? "which nothing keeps from ending before" : "which may not have begun");
  finding.hint = begun
                     ? "end with cluster.sync() (barrier.cluster), so that no block exits while "
                       "others use its shared memory"
                     : "begin with cluster.sync() (barrier.cluster): only then have all blocks of "
                       "the cluster started";
  keep(key, std::move(finding));
}

void BlockCheck::report_divergence(const Op* op, const Warp& warp, int lane, std::uint32_t first_op,
                                   std::uint32_t first_thread) {
  const std::uint64_t key =
      std::uint64_t{3} << 60 | std::uint64_t{first_op} << 28 | warp.op_index(op);
  if (seen(key)) return;
  Finding finding = describe(op, warp, lane, FaultKind::sync);
  finding.what = "barrier";
  finding.fault.message =
      "threads of one block wait at different barriers of the program for each other";
  const auto& shape = warp.worker->launch->block;
  OtherAccess there = describe_other(first_op);
  there.what = "barrier";
  there.block = finding.fault.block;
  there.thread = coordinates(first_thread, shape);
  finding.other = std::move(there);
  finding.hint =
      "__syncthreads() in a branch needs a condition that is the same for all threads of the block";
  keep(key, std::move(finding));
}

void BlockCheck::product_touched(const Op* op, const Warp& warp, std::string what,
                                 std::uint32_t product) {
  if (!sync) return;
  const std::uint64_t key = std::uint64_t{7} << 60 | warp.op_index(op);
  if (seen(key)) return;
  Finding finding = describe(op, warp, std::countr_zero(warp.mask), FaultKind::sync);
  finding.what = "register";
  finding.fault.message = std::move(what);
  OtherAccess there = describe_other(product);
  there.what = "wgmma";
  there.block = finding.fault.block;
  there.thread = finding.fault.thread;
  finding.other = std::move(there);
  finding.hint =
      "wgmma.commit_group and wgmma.wait_group come first; ptxas waits here by itself, and may run "
      "the products one by one (its notes C7510 to C7517). Where a compiler moved the access, "
      "asm volatile(\"\" : \"+f\"(x)) behind the wait holds it back";
  keep(key, std::move(finding));
}

void BlockCheck::check_members(const Op* op, const Warp& warp, const std::uint32_t* members) {
  // Nearly always those that meet make groups (one, or tiles) whose lanes name just each other.
  std::uint32_t rest = warp.mask;
  while (rest != 0) {
    const std::uint32_t named = members[std::countr_zero(rest)];
    std::uint32_t same = 0;
    for (int i = 0; i < kLanes; ++i) same |= (members[i] == named ? 1u : 0u) << i;
    if ((same & warp.mask) != (named & warp.mask) || (named & rest) == 0) break;
    rest &= ~named;
  }
  if (rest == 0) return;
  for (std::uint32_t m = warp.mask; m != 0; m &= m - 1) {
    const int lane = std::countr_zero(m);
    const bool missing = (members[lane] >> lane & 1) == 0;
    std::uint32_t others = members[lane] & warp.mask & ~(1u << lane);
    while (!missing && others != 0 && members[std::countr_zero(others)] == members[lane]) {
      others &= others - 1;
    }
    if (!missing && others == 0) continue;
    const std::uint64_t key =
        std::uint64_t{1} << 63 | std::uint64_t{missing} << 32 | warp.op_index(op);
    if (seen(key)) return;
    Finding finding = describe(op, warp, lane, FaultKind::sync);
    finding.what = "meeting";
    if (missing) {
      finding.fault.message =
          format("lane {} executes a .sync instruction whose member mask {:#010x} leaves it out",
                 lane, members[lane]);
      finding.hint =
          "each lane must be in its own mask; __activemask() is not the set of lanes "
          "that take a branch together";
    } else {
      const int other = std::countr_zero(others);
      finding.fault.message = format(
          "lanes {} and {} meet at a .sync instruction with different member masks, {:#010x} and "
          "{:#010x}",
          lane, other, members[lane], members[other]);
      finding.hint = "all lanes that a mask names must pass the same mask";
    }
    keep(key, std::move(finding));
    return;
  }
}

}  // namespace kernwright::sim
