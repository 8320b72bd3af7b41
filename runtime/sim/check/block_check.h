// The checks of one block in flight: its time, its shadow of shared and local memory, what its
// warps know of each other.
#pragma once

#include "sim/check/block_place.h"
#include "sim/check/checked_launch.h"
#include "sim/check/copies/async_copies.h"
#include "sim/check/copies/async_reads.h"
#include "sim/check/copies/copy_groups.h"
#include "sim/check/copies/wgmma_groups.h"
#include "sim/check/flow/lost_values.h"
#include "sim/check/history/known_regions.h"
#include "sim/check/history/late_reads.h"
#include "sim/check/history/shadow.h"
#include "sim/check/init/init_check.h"
#include "sim/check/order/block_order.h"
#include "sim/check/order/cluster_order.h"
#include "sim/check/order/mbarrier_state.h"
#include "sim/check/order/random_schedule.h"
#include "sim/check/race/access.h"
#include "sim/check/race/rules.h"
#include "sim/check/race/speculated.h"
#include "sim/check/race/touch.h"
#include "sim/check/report/block_findings.h"
#include "sim/exec/warp/lane_memory.h"
#include "sim/exec/watcher.h"
#include "sim/tensor_map.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kernwright::sim {

/// Lives as long as its BlockRunner, on one host thread. The fields in front are what handlers look
/// at; the functions are for what they cannot decide at a glance.
class BlockCheck final : public Watcher {
 public:
  BlockCheck(CheckedLaunch& launch, const WatchedBlocks& blocks);
  /// Hands its findings to the launch.
  ~BlockCheck() override;
  /// The checks of the block that the warp is of.
  static BlockCheck& of(const Warp& warp) { return static_cast<BlockCheck&>(*warp.worker->check); }

  /// Nothing of the block before it is remembered but its accesses to global memory.
  void begin(const Block& block) override;

  const CheckedOp* ops = nullptr;  ///< by op index
  CheckSite* sites = nullptr;      ///< by CheckedOp::site
  bool init = false, race = false, sync = false;
  bool parts = false;        ///< CheckedProgram::kernel_orders_parts()
  bool alone = false;        ///< no other worker runs blocks of the launch
  bool defers = false;       ///< reads of shared memory may be put off
  bool pauses = false;       ///< another warp may run before an access, at random
  bool inside = false;       ///< a checked handler runs: locate() need not look
  bool follows = false;      ///< lanes hold what nobody wrote or gave, and may not want it
  bool speculating = false;  ///< lanes loaded what they may not want, which races only if they do
  bool careful = false;      ///< `pauses` or `follows`: a glance at an access is not enough
  Shadow* shared_write = nullptr;
  Shadow* shared_read = nullptr;
  LateReads late;
  WrittenGranules written;  ///< kept where reads are put off
  Span reading;             ///< shared memory that asynchronous operations read
  /// Another one whenever a read that was looked at must be looked at again: after writes to shared
  /// memory, at each tick. 0, where that is not counted or there are no more numbers: always.
  std::uint32_t read_epoch = 1;
  std::uint32_t block_epoch = 1;  ///< when the block began
  void (*replay)(BlockCheck& check) =
      nullptr;  ///< notes what was put off; set with the first of it
  BlockPlace where;
  BlockOrder order;
  RaceRules rules;
  BlockFindings findings;
  KnownRegions regions;
  InitCheck unwritten;
  AsyncCopies copies;

  /// Under a seed: whether the warp lets others go first. Then it parks before `op`.
  bool pause(const Op* op, Warp& warp) { return schedule_.pause(op, warp); }
  /// Under a seed at random.
  const std::uint32_t* warp_order() override { return pauses ? schedule_.warp_order() : nullptr; }

  /// The race check of one access, word by word; updates the shadows.
  void examine(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  /// As InitCheck::judge().
  std::uint64_t judge_uninitialised(const Op* op, Warp& warp, int lane, const LaneTouch& touch) {
    const std::uint64_t counted = unwritten.judge(op, warp, lane, touch);
    note_followed();
    return counted;
  }
  /// As InitCheck::forget_loads().
  void forget_loads(const Op* op, const Warp& warp) {
    unwritten.forget_loads(op, warp);
    note_followed();
  }
  /// As InitCheck::end_copies().
  void end_copies(const Warp& warp) {
    if (unwritten.end_copies(warp)) new_epoch();
  }
  /// An access that went through locate(), in any space: both checks.
  /// `space` generic: the address's window decides. Memory that is not there is left alone.
  void touch_lane(const Op* op, Warp& warp, int lane, AccessKind mode, std::uint64_t address,
                  std::uint64_t bytes, ptx::Space space);
  /// What a checked handler looks at itself is left to it.
  void located(const Op* op, Warp& warp, int lane, const LaneAccess& access) override;
  void accessed(const Op* op, Warp& warp, int lane, const LaneAccess& access) override;
  /// In local memory the value has to be written.
  void used(const Op* op, Warp& warp, int lane, std::uint64_t address,
            std::uint32_t bytes) override;
  /// A load of the active lanes of which only the bytes of CheckedOp::used count.
  void touch_used(const Op* op, Warp& warp, const CheckedOp& info, const std::uint64_t* address,
                  ptx::Space space);
  /// The race check of a load with CheckedOp::speculated; the active lanes' addresses.
  void speculate(const Op* op, Warp& warp, const CheckedOp& info, const std::uint64_t* address,
                 ptx::Space space);
  /// The active lanes take what such loads read (CheckedOp::takes), or some of them do.
  void take_loads(const Op* op, Warp& warp);
  void allocated(std::uint64_t address, std::uint64_t bytes) override;

  AsyncCopy copy_to(const Op* op, Warp& warp, int lane, std::uint64_t rank, const Piece& to,
                    const Piece& from) override;
  void copy_between(const Op* op, Warp& warp, int lane, const Piece& from,
                    AsyncCopy& copy) override;
  void copied(std::uint64_t mbarrier, const AsyncCopy& copy) override;
  void copy_from(const Op* op, Warp& warp, int lane, BulkStore store) override;
  /// cp.async.bulk.commit_group and wait_group (.read) of the active lanes.
  void end_bulk_group(const Warp& warp);
  void wait_for_stores(Warp& warp, std::size_t left, bool reads_only);
  /// fence.proxy.async.
  void fence_proxy(const Warp& warp);
  /// fence.proxy.tensormap::generic.acquire at the lanes' addresses.
  void fence_maps(const Op* op, const Warp& warp);
  void use_map(const Op* op, Warp& warp, int lane, std::uint64_t address) override;
  /// A warp's wgmma, commit_group and wait_group.
  void wgmma(const Op* op, Warp& warp);
  void end_wgmma_group(const Warp& warp);
  void wait_for_wgmma(const Warp& warp, std::size_t left);
  void product_touched(const Op* op, const Warp& warp, std::string what,
                       std::uint32_t product) override;

  void end_phase(std::uint64_t mbarrier) override {
    if (init || race) copies.end_phase(mbarrier);
  }

  /// The checks of the block of that rank in the cluster; null where there is none or it has ended.
  BlockCheck* peer(std::uint64_t rank) const;
  /// Arrival of the active lanes at the cluster's barrier.
  void arrive_at_cluster(const Warp& warp, bool release);
  void end_cluster_phase() override;
  void pass_cluster(const Warp& warp, std::uint32_t lanes) override;
  /// What threads did before they arrived is past where all wait.
  void end_cluster_arrivals(bool all_wait) override;
  /// Who still uses the block's shared memory?
  void end() override;

  // Order. All take the warp whose lanes act.
  void meet(const Op* op, Warp& warp, const std::uint32_t* members) override;
  /// The warp's active lanes have done a shuffle. Needed where some source is lost, or `follows`.
  void shuffle(const Op* op, Warp& warp, const ShuffleSources& read);
  /// `follows`: the op copies, chooses or uses what shuffles gave, if it does.
  void follow_shuffles(const Op* op, Warp& warp);
  void fence(Warp& warp, Reach reach);
  /// Before a strong write of the active lanes at these addresses.
  void publish(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
               const CheckedOp& op);
  void arrive(const Op* op, Warp& warp, std::uint32_t id, std::uint32_t group, bool wait,
              bool counted) override;
  void release(const Block& block, std::uint32_t id, const Barriers::One& barrier) override;

  void new_tick();
  /// Words, of the region or of shared memory, need no shadows for their bytes where all of those
  /// are of long ago. Whether there were any.
  bool forget_bytes(GlobalRegion* there, std::uint64_t begin, std::uint64_t count);
  void new_epoch() noexcept { read_epoch += read_epoch != 0; }
  /// CheckSite::tag of a new pattern; none when there are no more numbers.
  std::int32_t new_tag() noexcept {
    return last_tag_ == std::numeric_limits<std::int32_t>::max() ? 0 : ++last_tag_;
  }
  /// Reads of words of shared memory that follow those of bytes are not put off: one shadow could
  /// not tell of both.
  void note_narrow_read(std::uint64_t begin, std::uint64_t end) noexcept {
    if (defers) written.mark(begin, end);
  }
  /// Before any shadow of shared memory is looked at or changed.
  void settle_reads() {
    if (late.count != 0) replay(*this);
  }

 private:
  friend class AsyncCopies;

  /// The shadow of an access now, without bytes.
  Shadow stamp_of(const CheckedOp& info, std::uint32_t thread) const noexcept {
    const Shadow site = info.site < kMostSites ? info.site : kMostSites;
    return order.stamp | site << kSiteShift | thread;
  }
  void begin_phase() noexcept;
  void look_for_divergence(const Op* op, const Warp& warp, std::uint32_t id, std::uint32_t lanes);
  template <typename F>
  void restamp_global(const Piece& piece, F is, Shadow shadow);
  void write_by_copy(const Op* op, Warp& warp, int lane, std::uint64_t rank, const Piece& to,
                     Shadow stamp_of_copy);
  void end_read(Warp& warp, int lane, BulkStore& store);
  void end_store(const BulkStore& store, Shadow shadow);
  void forget_stores();
  void read_by_proxy(const Op* op, Warp& warp, int lane, std::uint64_t at, std::uint32_t bytes,
                     const BulkStore* to = nullptr);
  bool look_at_write(const WordAccess& access, Shadow write);
  void look_at_source(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  std::array<Shadow, 4> writes_of_bytes(const LaneTouch& touch, std::uint64_t word, Shadow write);
  Shadow write_of_map(std::uint64_t address);
  bool needs_proxy_fence(Shadow write, const Warp& warp) const;
  void look_at_async_reads(const WordAccess& access, const BlockCheck& owner, std::uint64_t begin,
                           std::uint64_t end);
  void touch_far(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  BlockCheck& first_of_cluster() const;
  void visit(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  void report_stray(const Visit& visit, const BlockCheck& owner, bool begun);
  void examine_global(const Op* op, Warp& warp, int lane, AccessKind mode, std::uint64_t address,
                      std::uint64_t bytes);
  void stamp_word(std::uint64_t word, Shadow stamp_of_copy);
  void restamp_shadow(Shadow& write, Shadow before, Shadow now, const std::vector<Shadow>& others);
  bool has_shared(std::uint64_t offset, std::uint64_t bytes) const;
  void init_part(const Op* op, Warp& warp, int lane, const LaneTouch& touch, std::uint64_t* map,
                 std::uint64_t at);
  void touch_part(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  Shadow* byte_shadows(const LaneTouch& touch, std::uint64_t word);
  void examine_word(const WordAccess& access, Shadow& write, Shadow& read, std::uint32_t bytes);
  void examine_bytes(const WordAccess& access, Shadow& write, Shadow& read, std::uint32_t bytes);
  void examine_shadows(const WordAccess& access, Shadow& write, Shadow& read, Shadow mine);
  void look_at_readers(const WordAccess& access, Shadow& read);
  bool hides_readers(const WordAccess& access, Shadow read) const;
  Breadth hidden_breadth(const WordAccess& access, Shadow read) const;
  void note_reader(const WordAccess& access, Shadow& read, Shadow mine);
  void look_again(Speculated& load, std::uint32_t index, int lane);
  void examine_load(Speculated& load, std::uint32_t index, int lane);
  void look_at_writes(const WordAccess& access, const Shadow& write);
  void look_at_speculated(const Warp* warp);
  void take_load(Speculated& load, std::uint32_t index, int lane);
  void note_late_reader(const WordAccess& access, Shadow& read, Shadow mine);
  ReaderLists& readers(const WordAccess& access);
  HiddenAccesses& hidden(const WordAccess& access);
  void look_at_hidden(const WordAccess& access, Shadow& write);
  void spread_hidden(const WordAccess& access, const Shadow& write, Shadow* bytes);
  void note_write(const WordAccess& access, Shadow& write, Shadow mine);
  void look_at_sources(const WordAccess& access);
  void report_race(const WordAccess& access, Shadow other, bool other_wrote,
                   Missing missing = Missing::order, Told told = Told::itself);
  bool same_value(const WordAccess& access, Shadow other) const;
  void note_followed() noexcept {
    follows = unwritten.has_loads() || !lost_.empty();
    careful = pauses || follows;
  }

  RandomSchedule schedule_;
  std::vector<CheckSite> site_store_;
  std::vector<Shadow> shared_shadows_;
  std::vector<Shadow> shared_exact_;  ///< 8 per word of shared memory; made when needed
  std::uint64_t shared_bytes_ = 0;
  std::uint32_t warps_ = 0;

  ClusterOrder cluster_;
  struct ArrivalState {
    BlockOrder::WarpTicks tick{};  ///< of those who did not wait
    std::uint32_t first_op = 0;
    std::uint32_t first_thread = 0;
    bool open = false;
  };
  std::array<ArrivalState, kBarrierCount> arrivals_;

  CopyGroups<BulkStore> stores_;
  /// By address: what the write shadows of a tensor map said at the block's last fence for it.
  std::unordered_map<std::uint64_t, std::array<Shadow, kTensorMapBytes / 4>> fenced_maps_;
  AsyncReads reads_;
  WgmmaGroups products_;
  Shadow before_ = 0;    ///< a write that is known to come before what is looked at
  ReaderLists readers_;  ///< of this block's shared memory
  HiddenAccesses hidden_;
  std::int32_t last_tag_ = 0;
  SpeculatedLoads speculated_;
  Speculated* looking_ = nullptr;  ///< whose races are looked for, and nothing else is done
  bool taking_ = false;            ///< a read of before is noted
  LostValues lost_;
};

}  // namespace kernwright::sim
