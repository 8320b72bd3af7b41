// The wording of races.
#include "base/format.h"
#include "sim/check/block_check.h"
#include "sim/check/report/block_findings.h"
#include "sim/check/report/finding_text.h"
#include "sim/exec/block/cluster.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace kernwright::sim {
namespace {

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
    "let a thread of the block execute it for the map's 128 bytes before the copy";
constexpr const char* kClusterHint =
    "put cluster.sync() (barrier.cluster.arrive and wait) between the two accesses, or an mbarrier";
constexpr const char* kScopeHint =
    "operations of block scope are atomic for threads of one block only: take device scope "
    "(atomicAdd() in place of atomicAdd_block(), thread_scope_device)";
constexpr const char* kGridHint =
    "blocks run in any order: use atomics, a flag with __threadfence() on both sides, grid.sync() "
    "of a cooperative launch, or a kernel of its own for what comes after";

/// The wait needed before an access that meets an asynchronous operation: a write to shared memory
/// (`to_shared`), or one reported to an mbarrier (`tells`).
const char* wait_hint(const CheckedOp* op, bool to_shared, bool tells, bool global) {
  const CheckKind kind = op == nullptr ? CheckKind::copy : op->kind;
  return kind == CheckKind::wgmma         ? kProductHint
         : kind == CheckKind::copy        ? kCopyHint
         : to_shared || (tells && global) ? kBulkHint
         : tells                          ? kSendHint
                                          : kStoreHint;
}

/// One race, with all parts of its report.
class RaceReport {
 public:
  RaceReport(const BlockPlace& place, const RacePair& race)
      : place_(place),
        race_(race),
        other_op_(place.op_at(get_site(race.other))),
        owner_(race.access.mixed ? place.owner(race.other) : place.block),
        thread_(get_thread(race.other)),
        by_copy_(race.other_wrote && race.missing == Missing::order && !race.access.global &&
                 is_by_copy(race.other)),
        same_time_(get_tick(race.other) == race.tick &&
                   get_site(race.other) == race.access.info.site),
        breadth_(race.missing != Missing::order || by_copy_
                     ? Breadth::copy
                     : place.get_breadth(race.access, race.other, race.told)) {}

  const WordAccess& access() const { return race_.access; }
  Breadth breadth() const { return breadth_; }

  /// The other access, but for where it stands. `memory`: the bytes of this one.
  void describe_other(OtherAccess& there, const std::byte* memory) const {
    const LaunchContext& launch = *access().warp.worker->launch;
    there.block = coordinates(owner_, launch.grid);
    there.thread = coordinates(thread_, launch.block);
    there.what = !race_.other_wrote               ? "read"
                 : !is_strong(race_.other)        ? "write"
                 : is_volatile_write(race_.other) ? "volatile write"
                                                  : "atomic access";
    if (other_op_ != nullptr) there.what = act_text(*other_op_, there.what);
    there.thread_known = race_.told != Told::several && !by_copy_;
    if (race_.told != Told::hidden) there.value = other_value(memory);
    if (std::string stored = other_stored_value(); !stored.empty()) there.value = std::move(stored);
  }

  /// The value read or stored by this access; empty if unknown.
  std::string current_value(const std::byte* memory) const {
    const LaneTouch& touch = access().touch;
    if (access().info.kind == CheckKind::store) {
      const auto value = stored_value(access().op, access().warp, access().info, access().lane);
      return hexadecimal(value.data(), touch.bytes);
    }
    const bool is_there = touch.mode == AccessKind::read && !access().is_late;
    return is_there ? hexadecimal(memory, touch.bytes) : std::string();
  }

  std::string message(const Finding& finding, const OtherAccess& there) const {
    const LaneTouch& touch = access().touch;
    const std::uint64_t shown = access().global ? touch.address : touch.address & kOffsetMask;
    const std::string text =
        format("{} and {} of the same {} at {}{:#x}", there.what, finding.what,
               touch.owner != nullptr ? shared_text(touch.owner->where.ctaid) : finding.space,
               access().global ? "" : "offset ", shown);
    switch (race_.missing) {
      case Missing::wait: return text + ", and nothing waits for the end of it in between";
      case Missing::proxy_fence: return text + ", and no proxy fence lies between them";
      case Missing::map_fence:
        return text + ", as a tensor map, and no proxy fence of tensor maps lies between them";
      case Missing::order: break;
    }
    return text + format(" by {}, and nothing orders them", between());
  }

  const char* hint(const OtherAccess& there) const {
    const CheckedOp& info = access().info;
    if (race_.missing == Missing::proxy_fence) return kProxyHint;
    if (race_.missing == Missing::map_fence) return kMapHint;
    if (race_.missing == Missing::wait || by_copy_) {
      const bool tells = there.opcode.find("mbarrier") != there.opcode.npos;
      return wait_hint(other_op_, race_.other_wrote && !access().global, tells, access().global);
    }
    const bool out_of_reach = info.strong && other_op_ != nullptr && other_op_->strong &&
                              std::min(info.reach, other_op_->reach) < place_.reach_to(owner_);
    if (out_of_reach) return kScopeHint;
    const bool same_instruction = breadth_ == Breadth::warp && race_.other_wrote && same_time_ &&
                                  access().touch.mode == AccessKind::write &&
                                  thread_ != access().warp.thread(access().lane);
    if (same_instruction) return kSameHint;
    return breadth_ == Breadth::warp      ? kWarpHint
           : breadth_ == Breadth::block   ? kBlockHint
           : breadth_ == Breadth::cluster ? kClusterHint
                                          : kGridHint;
  }

 private:
  /// There was no write since the other access, so memory still holds its value. The other access
  /// may have touched fewer bytes.
  std::string other_value(const std::byte* memory) const {
    const LaneTouch& touch = access().touch;
    std::size_t width = touch.bytes, skip = 0;
    if (other_op_ != nullptr && other_op_->bytes != 0 && other_op_->bytes < width) {
      skip = access().begin > touch.address ? access().begin - touch.address : 0;
      width = other_op_->bytes;
      skip = width < 4 ? skip + static_cast<unsigned>(std::countr_zero(get_bytes(race_.other) | 8u))
                       : skip / width * width;
      skip = std::min(skip, touch.bytes - width);
    }
    return hexadecimal(memory + skip, width);
  }

  /// The value stored by another lane of the same instruction; empty for all other accesses.
  std::string other_stored_value() const {
    const Warp& warp = access().warp;
    const auto lane = static_cast<int>(thread_ % kLanes);
    if (access().info.kind != CheckKind::store || !race_.other_wrote || !same_time_ ||
        owner_ != place_.block || thread_ / kLanes != warp.index || (warp.mask >> lane & 1) == 0)
      return {};
    const auto value = stored_value(access().op, warp, access().info, lane);
    return hexadecimal(value.data(), access().touch.bytes);
  }

  /// The authors of the two accesses.
  const char* between() const {
    return by_copy_                       ? "a copy and a thread that did not wait for it"
           : breadth_ == Breadth::warp    ? "two lanes of one warp"
           : breadth_ == Breadth::block   ? "two warps of one block"
           : breadth_ == Breadth::cluster ? "two blocks of one cluster"
                                          : "two blocks";
  }

  const BlockPlace& place_;
  const RacePair& race_;
  const CheckedOp* const other_op_;
  const std::uint32_t owner_;   ///< the other access's block
  const std::uint32_t thread_;  ///< that made it
  const bool by_copy_;          ///< it is the end of a copy that an mbarrier told others
  const bool same_time_;        ///< both are of one instruction and tick
  const Breadth breadth_;
};

}  // namespace

void BlockFindings::race(const RacePair& race) {
  const WordAccess& access = race.access;
  const LaneTouch& touch = access.touch;
  const RaceReport report(place_, race);
  const std::uint32_t site = get_site(race.other);
  const std::uint64_t key =
      encode(Kind::race, std::uint64_t{access.info.site} << 16 | site << 1 | race.other_wrote);
  const std::byte* const memory = host_bytes(access.warp, access.lane, touch);
  if (memory == nullptr || seen(key, report.breadth())) return;
  Finding finding = describe(access.op, access.warp, access.lane, FaultKind::race,
                             act_text(access.info, verb_text(touch.mode)));
  finding.breadth = report.breadth();
  finding.space = noun_text(touch.space);
  finding.value = report.current_value(memory);
  finding.fault.address = touch.address;
  finding.fault.access_size = touch.bytes;
  OtherAccess there;
  if (place_.op_at(site) != nullptr)
    there = describe_other(place_.launch.program.site_ops[site], {}, {});
  report.describe_other(there, memory);
  finding.fault.message = report.message(finding, there);
  finding.hint = report.hint(there);
  if (access.global) {
    finding.fault.allocation =
        access.warp.worker->launch->memory->describe(touch.address, touch.bytes);
  }
  finding.other = std::move(there);
  keep(key, std::move(finding));
}

}  // namespace kernwright::sim
