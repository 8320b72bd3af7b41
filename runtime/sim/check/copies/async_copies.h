// Copies to a block's shared memory: in flight from their issue until a thread waits for them, or
// until a phase of their mbarrier ends.
#pragma once

#include "sim/check/copies/copy_groups.h"
#include "sim/check/order/clock.h"
#include "sim/check/order/mbarrier_state.h"
#include "sim/check/race/access.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace kernwright::sim {

class BlockCheck;

class AsyncCopies {
 public:
  explicit AsyncCopies(BlockCheck& check) : check_(check) {}

  Span sources;  ///< global memory that copies under way read

  /// Before another block begins. Copies without a wait end with the block.
  void forget();
  /// Nothing is known of the words' copies any more.
  void forget_origins() { origins_.clear(); }

  /// One lane's cp.async; only its addresses and sizes are looked at.
  void issue(const Op* op, Warp& warp, int lane, AsyncCopy copy);
  /// cp.async.commit_group.
  void end_group(const Warp& warp);
  /// The active lanes' cp.async.wait_group of all groups but the `left` last, or wait_all.
  void wait(Warp& warp, std::size_t left, bool all);

  /// A bulk copy to this block's shared memory is issued; `own`: by a thread of this block.
  void begin_bulk(AsyncCopy& copy, const Piece& from, bool local);
  /// Its read of global memory is under way.
  void begin_read(const AsyncCopy& copy) { arriving_.push_back(copy); }
  /// The mbarrier at this offset received the copy's byte count.
  void end_bulk(std::uint64_t mbarrier, const AsyncCopy& copy);

  /// Runs an mbarrier instruction: arriving threads are ordered before waiting ones.
  const Op* mbarrier(const Op* op, Warp& warp, const std::uint64_t* address, OpFn run);
  /// A phase of the mbarrier at this offset of shared memory ended.
  void end_phase(std::uint64_t mbarrier) { mbarrier_at(mbarrier).end_phase(); }

  /// Some copy's target is looked at.
  bool is_copying() const noexcept { return copying_ != nullptr; }
  /// Whether the last write to a word was a copy repeated by the current one. These two do not
  /// race; earlier writes may.
  bool is_twin(const WordAccess& access, Shadow& write);
  /// A copy under way with a read of these bytes of global memory; null: there is none.
  const AsyncCopy* get_reader(std::uint64_t begin, std::uint64_t end);

 private:
  static constexpr std::uint32_t kNoThread = ~std::uint32_t{0};
  /// Lanes of an instruction with the same mbarrier.
  struct Named {
    BlockCheck* owner;
    std::uint64_t offset;
    std::uint32_t lanes;
    bool phase;
  };
  struct NamedBarriers {
    std::array<Named, kLanes> all;
    std::size_t count = 0;
  };

  void note_target(const Op* op, Warp& warp, int lane, AsyncCopy& copy);
  AsyncCopy* copy_under_way(Shadow said);
  void join_twins(Shadow& write);
  static void end_twin(CopyTwins& twins, Shadow before, Shadow* shadow);
  void restamp(const AsyncCopy& copy, Shadow shadow);
  void restamp_words(const AsyncCopy& copy, Shadow before, Shadow shadow,
                     const std::vector<Shadow>& others);
  void finish(Warp& warp, int lane, const AsyncCopy& copy);
  void track(const Warp& warp, int lane, MbarrierState& state);
  void finish_tracked(const Warp& warp, std::uint32_t thread);
  template <typename F>
  bool end_tracked(MbarrierState& state, F is);
  void learn(const Warp& warp, const MbarrierState& state);
  bool phase_at(std::uint64_t offset) const;
  MbarrierState& mbarrier_at(std::uint64_t offset);
  NamedBarriers named_barriers(const Op* op, Warp& warp, const std::uint64_t* address);
  void arrive(const Op* op, Warp& warp, const Named& one, const SharedPast& past);
  void pass(Warp& warp, std::uint32_t lanes, MbarrierState& state, bool acquire);

  BlockCheck& check_;
  CopyGroups<AsyncCopy> groups_;
  std::unordered_map<std::uint64_t, CopyTwins> twins_;  ///< by target
  std::uint32_t last_twins_ = 0;
  std::vector<CopyOrigin> origins_;  ///< by word of shared memory; made with the first copy
  AsyncCopy* copying_ = nullptr;     ///< whose target is looked at
  std::array<Shadow, 4> priors_{};   ///< CopyOrigin::prior of its words
  std::vector<AsyncCopy> arriving_;  ///< bulk copies whose mbarrier was told nothing yet
  std::size_t under_way_ = 0;        ///< copies, of any thread
  std::unordered_map<std::uint64_t, MbarrierState> mbarriers_;  ///< by offset
  bool tracks_ = false;                                         ///< some of them track copies
};

}  // namespace kernwright::sim
