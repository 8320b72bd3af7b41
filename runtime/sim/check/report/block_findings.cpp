// Findings of a block's checks: the wording of all but races.
#include "sim/check/report/block_findings.h"

#include "base/format.h"
#include "sim/check/block_check.h"
#include "sim/check/report/finding_text.h"
#include "sim/code/program.h"
#include "sim/exec/block/cluster.h"

#include <bit>
#include <utility>

namespace kernwright::sim {

using ptx::Space;

namespace {

std::array<unsigned, 3> thread_at(const Warp& warp, int lane) {
  const auto l = static_cast<std::size_t>(lane);
  return {warp.tid[0][l], warp.tid[1][l], warp.tid[2][l]};
}

}  // namespace

Finding BlockFindings::describe(const Op* op, const Warp& warp, int lane, FaultKind kind,
                                std::string what) const {
  const Program& program = *warp.program;
  const Place& place = program.places[warp.op_index(op)];
  Finding finding;
  finding.what = std::move(what);
  Fault& fault = finding.fault;
  fault.kind = kind;
  fault.kernel = program.functions[warp.worker->launch->function].name;
  const ptx::SourceLine source = warp.get_source(op, lane);
  const auto file = static_cast<std::size_t>(source.file);
  if (file < program.module->files.size()) fault.file = program.module->files[file];
  fault.line = source.line;
  fault.ptx_line = place.ptx_line;
  fault.opcode = std::string(place.opcode);
  fault.block = {place_.ctaid[0], place_.ctaid[1], place_.ctaid[2]};
  fault.thread = thread_at(warp, lane);
  return finding;
}

OtherAccess BlockFindings::describe_other(std::uint32_t op, std::string what,
                                          const std::array<unsigned, 3>& thread) const {
  FaultPlace place = place_.launch.program.program.get_place(op);
  OtherAccess there;
  there.what = std::move(what);
  there.block = {place_.ctaid[0], place_.ctaid[1], place_.ctaid[2]};
  there.thread = thread;
  there.line = place.line;
  there.ptx_line = place.ptx_line;
  there.opcode = std::move(place.opcode);
  there.file = std::move(place.file);
  return there;
}

void BlockFindings::keep(std::uint64_t key, Finding&& finding) {
  const auto [known, is_new] = found_.try_emplace(key, std::move(finding));
  if (is_new) return;
  finding.count = known->second.count;
  known->second = std::move(finding);
}

bool BlockFindings::seen(std::uint64_t key, Breadth breadth) {
  const auto known = found_.find(key);
  if (known == found_.end()) return false;
  ++known->second.count;
  return known->second.breadth >= breadth;
}

void BlockFindings::uninitialised(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                                  std::uint64_t bits) {
  const std::uint64_t key = encode(Kind::uninitialised, warp.op_index(op));
  const std::byte* const bytes = host_bytes(warp, lane, touch);
  if (bytes == nullptr || seen(key)) return;
  Finding finding =
      describe(op, warp, lane, FaultKind::init,
               act_text(place_.launch.program.ops[warp.op_index(op)], verb_text(touch.mode)));
  finding.space = noun_text(touch.space);
  Fault& fault = finding.fault;
  fault.address = touch.address;
  fault.access_size = touch.bytes;
  finding.value = hexadecimal(bytes, touch.bytes);
  const bool global = touch.space == Space::global;
  const bool partly = std::popcount(bits) < static_cast<int>(touch.bytes);
  fault.message = format(
      "{} of {} bytes of {} at {}{:#x}{}", finding.what, touch.bytes,
      touch.owner != nullptr ? "the " + shared_text(touch.owner->where.ctaid) : finding.space,
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

void BlockFindings::stray(const Visit& visit, const std::array<std::uint32_t, 3>& ctaid,
                          bool begun) {
  const std::uint64_t key = encode(Kind::stray, std::uint64_t{begun} << 32 | visit.op);
  if (seen(key)) return;
  Finding finding =
      describe(visit.warp->code + visit.op, *visit.warp, visit.lane, FaultKind::race,
               act_text(place_.launch.program.ops[visit.op], verb_text(visit.touch.mode)));
  finding.space = noun_text(Space::cluster);
  finding.fault.address = visit.touch.address;
  finding.fault.access_size = visit.touch.bytes;
  finding.fault.message =
      format("{} of {} bytes of the {} at offset {:#x}, {}", finding.what, visit.touch.bytes,
             shared_text(ctaid), visit.touch.address & kOffsetMask,
             begun ? "which nothing keeps from ending before" : "which may not have begun");
  finding.hint = begun
                     ? "end with cluster.sync() (barrier.cluster), so that no block exits while "
                       "others use its shared memory"
                     : "begin with cluster.sync() (barrier.cluster): only then have all blocks of "
                       "the cluster started";
  keep(key, std::move(finding));
}

void BlockFindings::divergence(const Op* op, const Warp& warp, int lane, std::uint32_t first_op,
                               std::uint32_t first_thread) {
  const std::uint64_t key = encode(Kind::divergence, pair(first_op, warp.op_index(op)));
  if (seen(key)) return;
  Finding finding = describe(op, warp, lane, FaultKind::sync, "barrier");
  finding.fault.message =
      "threads of one block wait at different barriers of the program for each other";
  finding.other =
      describe_other(first_op, "barrier", coordinates(first_thread, warp.worker->launch->block));
  finding.hint =
      "__syncthreads() in a branch needs a condition that is the same for all threads of the block";
  keep(key, std::move(finding));
}

void BlockFindings::product(const Op* op, const Warp& warp, std::string what,
                            std::uint32_t product) {
  const std::uint64_t key = encode(Kind::product, warp.op_index(op));
  if (seen(key)) return;
  Finding finding = describe(op, warp, std::countr_zero(warp.mask), FaultKind::sync, "register");
  finding.fault.message = std::move(what);
  finding.other = describe_other(product, "wgmma", finding.fault.thread);
  finding.hint =
      "wgmma.commit_group and wgmma.wait_group come first; ptxas waits here by itself, and may run "
      "the products one by one (its notes C7510 to C7517). Where a compiler moved the access, "
      "asm volatile(\"\" : \"+f\"(x)) behind the wait holds it back";
  keep(key, std::move(finding));
}

void BlockFindings::members(const Op* op, const Warp& warp, const std::uint32_t* members) {
  // Nearly always the meeting lanes form groups (one, or tiles) with exactly their own lanes.
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
    return report_members(op, warp, lane, missing ? lane : std::countr_zero(others), members);
  }
}

/// The mask of `lane` does not contain it, if `other` is the lane itself, or differs from that of
/// `other`.
void BlockFindings::report_members(const Op* op, const Warp& warp, int lane, int other,
                                   const std::uint32_t* members) {
  const bool missing = other == lane;
  const std::uint64_t key = encode(Kind::members, std::uint64_t{missing} << 32 | warp.op_index(op));
  if (seen(key)) return;
  Finding finding = describe(op, warp, lane, FaultKind::sync, "meeting");
  if (missing) {
    finding.fault.message =
        format("lane {} executes a .sync instruction whose member mask {:#010x} leaves it out",
               lane, members[lane]);
    finding.hint =
        "each lane must be in its own mask; __activemask() is not the set of lanes "
        "that take a branch together";
  } else {
    finding.fault.message = format(
        "lanes {} and {} meet at a .sync instruction with different member masks, {:#010x} and "
        "{:#010x}",
        lane, other, members[lane], members[other]);
    finding.hint = "all lanes that a mask names must pass the same mask";
  }
  keep(key, std::move(finding));
}

void BlockFindings::lost(const Op* op, const Warp& warp, int lane, const LostSource& from) {
  const std::uint64_t key = encode(Kind::lost, pair(from.op, warp.op_index(op)));
  if (seen(key)) return;
  Finding finding = describe(warp.code + from.op, warp, from.reader, FaultKind::sync, "shuffle");
  const auto& shape = warp.worker->launch->block;
  const std::uint32_t threads = shape[0] * shape[1] * shape[2];
  const std::uint32_t thread =
      warp.index * std::uint32_t{kLanes} + static_cast<unsigned>(from.lane);
  std::string why = "which has exited";
  finding.hint =
      "what is read is undefined: let all lanes of the warp come to the shuffle, with a condition "
      "around what they load and store in place of an early return";
  if (!from.is_member) {
    why = format("which its member mask {:#010x} leaves out", from.members);
    finding.hint =
        "what is read is undefined: read from lanes of the mask only, or use coalesced_threads() "
        "of cooperative_groups, which numbers them";
  } else if (thread >= threads) {
    why = format("and the block of {} threads has none there", threads);
    finding.hint =
        "what is read is undefined: launch whole warps, or read from lanes that there are only";
  }
  finding.fault.message =
      format("lane {} reads from lane {} in a shuffle, {}, and the value is used",
             static_cast<int>(from.reader), static_cast<int>(from.lane), why);
  finding.other = describe_other(warp.op_index(op), "use", thread_at(warp, lane));
  keep(key, std::move(finding));
}

}  // namespace kernwright::sim
