// The checks of one block in flight: its time, its shadow of shared and local memory, what its
// warps know of each other.
#pragma once

#include "sim/check/async_reads.h"
#include "sim/check/cell.h"
#include "sim/check/checked_launch.h"
#include "sim/check/copy_groups.h"
#include "sim/check/doubts.h"
#include "sim/check/late_reads.h"
#include "sim/check/mbarrier_state.h"
#include "sim/check/race/speculated.h"
#include "sim/check/race/touch.h"
#include "sim/exec/lane_memory.h"
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
  bool scattered = false;    ///< this block has ticks on both sides of another block's
  bool pauses = false;       ///< warps take turns at random before accesses
  bool inside = false;       ///< a checked handler runs: locate() need not look
  bool in_doubt = false;     ///< lanes hold what nobody wrote or gave, and may not want it
  bool speculating = false;  ///< lanes loaded what they may not want, which races only if they do
  bool careful = false;      ///< `pauses` or `in_doubt`: a glance at an access is not enough
  Cell stamp = 0;            ///< the tick now
  Cell floor = 0;            ///< what this block did below happened before
  Cell first = 0;            ///< this block's cells between here and `floor` need no further look
  Cell launch_floor = 0;     ///< cells of earlier launches lie below
  Cell* shared_write = nullptr;
  Cell* shared_read = nullptr;
  std::uint64_t* shared_poison = nullptr;
  std::uint64_t* local_poison = nullptr;  ///< bytes in the order of Worker::local
  LateReads late;
  WrittenGranules written;  ///< kept where reads are put off
  Span sources;             ///< global memory that copies under way read
  Span reading;             ///< shared memory that asynchronous operations read
  /// Another one whenever a read that was looked at must be looked at again: after writes to shared
  /// memory, at each tick. 0, where that is not counted or there are no more numbers: always.
  std::uint32_t read_epoch = 1;
  std::uint32_t block_epoch = 1;  ///< when the block began
  void (*replay)(BlockCheck& check) =
      nullptr;  ///< notes what was put off; set with the first of it

  /// Under a seed: whether the warp lets others go first. Then it parks before `op`.
  bool pause(const Op* op, Warp& warp);
  /// Under a seed at random.
  const std::uint32_t* warp_order() override;

  /// The region around a global address.
  GlobalRegion* region(std::uint64_t address);

  /// The race check of one access, word by word; updates the cells.
  void examine(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  /// One lane's read of bytes some of which nobody wrote. Returns those that shall count as written
  /// from now on, a bit each: the same is said once.
  std::uint64_t judge_uninitialised(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  /// A load with LoadedBytes::later runs anew.
  void forget_doubts(const Op* op, const Warp& warp);
  /// The active lanes use what such loads read (CheckedOp::uses); a store at these addresses.
  void settle_doubts(const Op* op, Warp& warp, ptx::Space space, const std::uint64_t* addresses);
  /// Behind the store: what it copied is as unwritten as before.
  void end_copies(const Warp& warp);
  bool has_copies() const { return !unwritten_copies_.empty(); }
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
  /// The copy of a device function's parameter block to local memory.
  void note_parameters(const Op* op, const Warp& warp);
  void allocated(std::uint64_t address, std::uint64_t bytes) override;

  /// One lane's cp.async; only its addresses and sizes are looked at.
  void copy(const Op* op, Warp& warp, int lane, AsyncCopy copy);
  /// cp.async.commit_group.
  void end_group(const Warp& warp);
  /// The active lanes' cp.async.wait_group of all groups but the `left` last, or wait_all.
  void wait_for_copies(Warp& warp, std::size_t left, bool all);

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

  /// Runs an mbarrier instruction, which orders those who arrive before those who wait.
  const Op* mbarrier(const Op* op, Warp& warp, const std::uint64_t* address, OpFn run);
  void end_phase(std::uint64_t mbarrier) override;

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
  /// The warp's active lanes have done a shuffle. Needed where some source is lost, or `in_doubt`.
  void shuffle(const Op* op, Warp& warp, const ShuffleSources& read);
  /// `in_doubt`: the op copies, chooses or uses what shuffles gave, if it does.
  void follow_shuffles(const Op* op, Warp& warp);
  void fence(Warp& warp, Reach reach);
  /// Before a strong write and after a strong read of the active lanes at these addresses.
  void publish(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
               const CheckedOp& op);
  void observe(const Warp& warp, const std::uint64_t* addresses, ptx::Space space,
               const CheckedOp& op);
  void arrive(const Op* op, Warp& warp, std::uint32_t id, std::uint32_t group, bool wait,
              bool counted) override;
  void release(const Block& block, std::uint32_t id, const Barriers::One& barrier) override;

  void new_tick();
  /// Words, of the region or of shared memory, need no cells for their bytes where all of those are
  /// of long ago. Whether there were any.
  bool forget_bytes(GlobalRegion* there, std::uint64_t begin, std::uint64_t count);
  /// Below, the warp's accesses are ordered for all of its lanes.
  Cell met(std::uint32_t warp) const noexcept { return Cell{warp_floor_[warp]} << kTickShift; }
  void new_epoch() noexcept { read_epoch += read_epoch != 0; }
  /// CheckSite::tag of a new pattern; none when there are no more numbers.
  std::int32_t new_tag() noexcept {
    return last_tag_ == std::numeric_limits<std::int32_t>::max() ? 0 : ++last_tag_;
  }
  /// Reads of words of shared memory that follow those of bytes are not put off: one cell could not
  /// tell of both.
  void note_narrow_read(std::uint64_t begin, std::uint64_t end) noexcept {
    if (defers) written.mark(begin, end);
  }
  /// Before any cell of shared memory is looked at or changed.
  void settle_reads() {
    if (late.count != 0) replay(*this);
  }

 private:
  /// What a report needs of the current access.
  struct Access {
    const Op* op;
    Warp& warp;
    int lane;
    const LaneTouch& touch;
    const CheckedOp& info;
    bool global;
    bool mixed;           ///< the cells may be other blocks'
    Cell mine;            ///< stamp of this access, without bytes
    std::uint64_t word;   ///< of the space or region
    std::uint64_t begin;  ///< address of the word

    bool is_late = false;  ///< it is told of after others have written

    /// An atomic operation, not the read of what a bulk reduction adds.
    bool is_strong() const noexcept {
      return info.strong && (touch.mode != AccessKind::read || info.kind == CheckKind::load);
    }
  };

  /// The cell of an access now, without bytes.
  Cell stamp_of(const CheckedOp& info, std::uint32_t thread) const noexcept {
    const Cell site = info.site < kMostSites ? info.site : kMostSites;
    return stamp | site << kSiteShift | thread;
  }
  /// The last access of another block's warp to this block's shared memory.
  struct Visit {
    BlockCheck* visitor = nullptr;
    const Warp* warp = nullptr;
    std::uint32_t tick = 0, op = 0;
    int lane = 0;
    LaneTouch touch;
  };
  /// How an access takes part in races.
  struct Conduct {
    bool reads = false, strong = false, is_volatile = false, swaps = false;
    Reach reach = Reach::device;
  };
  /// What a report knows of the other access.
  enum class Told : std::uint8_t { itself, one_of_several, hidden };
  /// What two accesses lack.
  enum class Missing : std::uint8_t { order, wait, proxy_fence, map_fence };
  static constexpr std::uint32_t kNoThread = ~std::uint32_t{0};
  void begin_phase() noexcept;
  template <typename F>
  void restamp_global(const Piece& piece, F is, Cell cell);
  void write_by_copy(const Op* op, Warp& warp, int lane, std::uint64_t rank, const Piece& to,
                     Cell stamp_of_copy);
  void end_read(Warp& warp, int lane, BulkStore& store);
  void end_store(const BulkStore& store, Cell cell);
  void forget_stores();
  void read_by_proxy(const Op* op, Warp& warp, int lane, std::uint64_t at, std::uint32_t bytes,
                     const BulkStore* to = nullptr);
  void read_unwritten(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                      const BulkStore* to);
  bool look_at_write(const Access& access, Cell write);
  void look_at_source(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  std::array<Cell, 4> writes_of_bytes(const LaneTouch& touch, std::uint64_t word, Cell write);
  Cell write_of_map(std::uint64_t address);
  bool needs_proxy_fence(Cell write, const Warp& warp) const;
  bool is_proxied(Cell write, const Warp& warp) const;
  void look_at_async_reads(const Access& access, const BlockCheck& owner, std::uint64_t begin,
                           std::uint64_t end);
  void touch_far(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  BlockCheck& first_of_cluster() const;
  void visit(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  void report_visit(const Visit& visit, BlockCheck& owner, bool begun);
  CheckedLaunch::Variable variable_of(std::uint64_t address, ptx::Space space,
                                      std::size_t reach) const;
  /// Calls f(LaneTouch) for each part of global memory that lies in one region, which is locked.
  template <typename F>
  void by_region(std::uint64_t address, std::uint64_t bytes, F f, AccessKind mode) {
    while (bytes != 0) {
      const std::uint64_t rest = kRegionBytes - address % kRegionBytes;
      const auto part = static_cast<std::uint32_t>(bytes < rest ? bytes : rest);
      GlobalRegion& there = *region(address);
      const std::lock_guard lock(there);
      f(LaneTouch{mode, ptx::Space::global, address, part, &there});
      address += part;
      bytes -= part;
    }
  }
  void examine_global(const Op* op, Warp& warp, int lane, AccessKind mode, std::uint64_t address,
                      std::uint64_t bytes);
  void note_copy(const Op* op, Warp& warp, int lane, AsyncCopy& copy);
  void stamp_word(std::uint64_t word, Cell stamp_of_copy);
  void restamp(const AsyncCopy& copy, Cell cell);
  static void end_twin(CopyTwins& twins, Cell before, Cell* cell);
  void restamp_cell(Cell& write, Cell before, Cell now, const std::vector<Cell>& others);
  AsyncCopy* copy_under_way(Cell said);
  bool is_twin(const Access& access, Cell& write);
  void join_twins(Cell& write);
  void forget_copies();
  void finish(Warp& warp, int lane, const AsyncCopy& copy);
  void track(const Warp& warp, int lane, MbarrierState& state);
  void finish_tracked(const Warp& warp, std::uint32_t thread);
  Cell copied_cell(const AsyncCopy& copy, std::uint32_t place) const;
  bool has_shared(std::uint64_t offset, std::uint64_t bytes) const;
  bool phase_at(std::uint64_t offset) const;
  MbarrierState& mbarrier_at(std::uint64_t offset);
  void pass(Warp& warp, std::uint32_t lanes, MbarrierState& state, bool acquire);
  void init_part(const Op* op, Warp& warp, int lane, const LaneTouch& touch, std::uint64_t* map,
                 std::uint64_t at);
  void touch_part(const Op* op, Warp& warp, int lane, const LaneTouch& touch);
  bool is_ordered(Cell cell, const Warp& warp, int lane, bool global, bool copied = false) const;
  bool is_write_ordered(Cell cell, const Warp& warp, int lane, bool global) const;
  bool is_forgotten(Cell cell, bool global) const;
  Cell* byte_cells(const LaneTouch& touch, std::uint64_t word);
  void examine_word(const Access& access, Cell& write, Cell& read, std::uint32_t bytes);
  void examine_bytes(const Access& access, Cell& write, Cell& read, std::uint32_t bytes);
  void examine_cells(const Access& access, Cell& write, Cell& read, Cell mine);
  void look_at_readers(const Access& access, Cell& read);
  bool hides_readers(const Access& access, Cell read) const;
  Breadth hidden_breadth(const Access& access, Cell read) const;
  void note_reader(const Access& access, Cell& read, Cell mine);
  void look_again(Speculated& load, std::uint32_t index, int lane);
  void examine_load(Speculated& load, std::uint32_t index, int lane);
  void look_at_writes(const Access& access, const Cell& write);
  void look_at_speculated(const Warp* warp);
  void take_load(Speculated& load, std::uint32_t index, int lane);
  void note_late_reader(const Access& access, Cell& read, Cell mine);
  ReaderLists& readers(const Access& access);
  HiddenAccesses& hidden(const Access& access);
  Conduct conduct_of(Cell write) const;
  bool is_load(Cell write) const;
  bool conflicts(Cell write, const Access& access) const;
  bool covers(Cell by, Cell cell) const;
  bool stand_for(Cell a, Cell b, Cell cell) const;
  void thin(const Access& access, std::vector<Cell>& list, Cell now);
  template <typename F>
  void leave_out(std::vector<Cell>& list, Cell now, bool across, F covers) const;
  void make_room(std::vector<Cell>& list, Cell now) const;
  void look_at_hidden(const Access& access, Cell& write);
  Cell last_write(const HiddenAccesses& all, const Cell& write) const;
  void spread_hidden(const Access& access, const Cell& write, Cell* bytes);
  void note_write(const Access& access, Cell& write, Cell mine);
  void look_at_sources(const Access& access);
  Breadth breadth_of(const Access& access, Cell other, Told told = Told::itself) const;
  void report_race(const Access& access, Cell other, bool other_wrote,
                   Missing missing = Missing::order, Told told = Told::itself);
  bool same_value(const Access& access, Cell other) const;
  std::uint64_t unwritten(const Warp& warp, int lane, const LaneTouch& touch);
  bool lies_in_object(const Warp& warp, int lane, const LaneTouch& touch, std::uint32_t alignment);
  bool move_on(const Warp& warp, int lane, bool padded, ptx::Space to, std::uint64_t address,
               int shift, std::uint64_t bits);
  /// The target of a copy is written, but where parts of its source in global memory are not.
  void write_target(const AsyncCopy& copy);
  void report_uninitialised(const Op* op, Warp& warp, int lane, const LaneTouch& touch,
                            std::uint64_t bits);
  /// Two operations order what lies around them where each reaches the other: what is released
  /// within a reach is kept for it and for all smaller ones, and taken from there in the same way.
  /// Calls f(reach) for those that matter to an operation that reaches as far as `reach`.
  template <typename F>
  void each_reach(Reach reach, F f) const {
    for (std::size_t r = 0; r <= static_cast<std::size_t>(reach); ++r) {
      if (launch_.program.reaches[r]) f(r);
    }
  }
  std::uint32_t cluster_of(std::uint32_t block) const;
  Reach reach_to(std::uint32_t block) const;
  const CheckedOp* op_at(std::uint32_t site) const;  ///< null where it is not known
  SharedPast snapshot(std::uint32_t warp) const;
  SharedPast fenced(std::uint32_t warp, Reach reach) const;
  void absorb(const Warp& warp, std::uint32_t lanes, const SharedPast& past);
  std::uint32_t* lane_row(std::uint32_t warp, int lane);
  Finding describe(const Op* op, const Warp& warp, int lane, FaultKind kind) const;
  OtherAccess describe_other(std::uint32_t op) const;
  void report_divergence(const Op* op, const Warp& warp, int lane, std::uint32_t first_op,
                         std::uint32_t first_thread);
  void check_members(const Op* op, const Warp& warp, const std::uint32_t* members);
  /// Of the lane's values from these sources the first that is lost; null: none is.
  const LostSource* lost(const Warp& warp, const std::vector<std::uint32_t>& values,
                         int lane) const;
  void note_doubts() noexcept {
    in_doubt = doubts_.any() || !lost_.empty();
    careful = pauses || in_doubt;
  }
  /// `of(lane)` says where the active lanes' new value comes from if it is lost.
  template <typename Of>
  void set_lost(const Warp& warp, std::uint32_t source, const Of& of);
  void report_lost(const Op* op, const Warp& warp, int lane, const LostSource& from);
  void keep(std::uint64_t key, Finding&& finding);
  /// Counts a finding that is known. False: it is not, or it is of a narrower race.
  bool seen(std::uint64_t key, Breadth breadth = Breadth::none);

  std::uint64_t next_random() noexcept;

  CheckedLaunch& launch_;
  std::uint64_t random_ = 0;
  std::vector<std::uint32_t> turns_;
  std::vector<CheckSite> site_store_;
  std::vector<Cell> shared_cells_;
  std::vector<Cell> shared_exact_;  ///< 8 per word of shared memory; made when needed
  std::vector<std::uint64_t> shared_poison_, local_poison_;
  std::uint64_t shared_bytes_ = 0;
  std::uint32_t warps_ = 0;
  std::uint32_t block_ = 0;  ///< linear index
  std::uint32_t tick_ = 0;
  std::array<std::uint32_t, 3> ctaid_{}, grid_shape_{}, cluster_shape_{};

  const Block* in_ = nullptr;
  bool clustered_ = false;  ///< shared memory may hold cells of other blocks
  std::unordered_map<std::uint64_t, Visit> visits_;  ///< by block and warp
  SharedPast cluster_open_, cluster_complete_;       ///< of the cluster, kept by its first block
  std::array<std::uint32_t, kMostWarps>
      cluster_arrivals_{};            ///< tick of each warp's first; 0: none
  bool cluster_relaxed_ = false;      ///< some arrival of the phase under way released nothing
  bool cluster_has_begun_ = false;    ///< some thread passed the cluster's barrier
  bool cluster_was_relaxed_ = false;  ///< of the phase before

  std::array<std::uint32_t, kMostWarps> warp_floor_{};  ///< ticks below: ordered within the warp
  std::array<Known, kMostWarps> known_{};               ///< by warp
  using LaneMatrix = std::array<std::array<std::uint32_t, kLanes>, kLanes>;
  std::array<std::unique_ptr<LaneMatrix>, kMostWarps> lane_known_;  ///< where parts of warps met
  std::array<SharedPast, kMostWarps> past_;
  std::array<PastByReach, kMostWarps> fenced_, pending_;
  struct ArrivalState {
    std::array<std::uint32_t, kMostWarps> tick{};  ///< of those who did not wait
    std::uint32_t first_op = 0;
    std::uint32_t first_thread = 0;
    bool open = false;
  };
  std::array<ArrivalState, kBarrierCount> arrivals_;

  CopyGroups<AsyncCopy> copies_;
  std::unordered_map<std::uint64_t, CopyTwins> twins_;  ///< by target
  std::uint32_t last_twins_ = 0;
  std::vector<CopyOrigin> origins_;  ///< by word of shared memory; made with the first copy
  AsyncCopy* copying_ = nullptr;     ///< whose target is looked at
  std::array<Cell, 4> priors_{};     ///< CopyOrigin::prior of its words
  std::vector<AsyncCopy> arriving_;  ///< bulk copies whose mbarrier was told nothing yet
  CopyGroups<BulkStore> stores_;
  /// By address: what the write cells of a tensor map said at the block's last fence for it.
  std::unordered_map<std::uint64_t, std::array<Cell, kTensorMapBytes / 4>> fenced_maps_;
  AsyncReads reads_;
  struct Products {
    std::uint32_t open = 0;  ///< number of the AsyncRead of the group that is not closed; 0: none
    std::vector<std::uint32_t> groups;  ///< closed, but for those that all four warps waited for
    std::size_t dropped = 0, waited = 0;
    std::size_t closed() const { return dropped + groups.size(); }
  };
  std::array<Products, kMostWarps> products_;
  Cell before_ = 0;               ///< a write that is known to come before what is looked at
  std::uint32_t begin_tick_ = 0;  ///< of the block
  std::size_t under_way_ = 0;     ///< copies, of any thread
  std::unordered_map<std::uint64_t, MbarrierState> mbarriers_;  ///< by offset
  bool tracks_ = false;                                         ///< some of them track copies
  ReaderLists readers_;                                         ///< of this block's shared memory
  HiddenAccesses hidden_;
  static constexpr std::size_t kRegionSlots = 64;
  struct RegionSlot {
    std::uint64_t number = ~std::uint64_t{0};
    GlobalRegion* region = nullptr;
  };
  std::array<RegionSlot, kRegionSlots> regions_{};
  std::int32_t last_tag_ = 0;
  Doubts doubts_;
  SpeculatedLoads speculated_;
  Speculated* looking_ = nullptr;  ///< whose races are looked for, and nothing else is done
  bool taking_ = false;            ///< a read of before is noted
  /// What a lane's store is about to overwrite with unwritten bytes.
  struct UnwrittenCopy {
    ptx::Space space = ptx::Space::local;
    int lane = 0;
    std::uint64_t address = 0, bits = 0;
  };
  std::vector<UnwrittenCopy> unwritten_copies_;
  /// By frame and FlowStep::source: lanes whose value comes from a shuffle that read from nobody.
  struct LostValue {
    std::uint32_t lanes = 0;
    std::array<LostSource, kLanes> from;
  };
  std::map<std::pair<const std::byte*, std::uint32_t>, LostValue> lost_;
  std::unordered_map<std::uint64_t, Finding> found_;
};

}  // namespace kernwright::sim
