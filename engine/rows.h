// The rows of running sequences on the device, and changes on the way there.
#pragma once

#include "core/event.h"
#include "core/stream.h"
#include "engine/row_states.h"
#include "kernels_src/steps/step_state.h"
#include "memory/pinned_buffer.h"

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kernwright::engine {

/// The state of all rows in one array at a fixed address. Changes are collected on the host;
/// flush() sends them with one copy and one kernel. Not thread-safe.
class Rows : public RowStates {
 public:
  /// All of it is used on `stream` alone. Throws InvalidArgument for a layout without rows, tokens
  /// or pages, or of 2^31 words and more.
  Rows(Device& device, const kernels::StateLayout& layout, const Stream& stream);

  const kernels::StateLayout& layout() const noexcept { return layout_; }
  const Array& state() const noexcept { return state_; }

  void set_row(std::int32_t row, const RowStart& start) override;
  void set_pages(std::int32_t row, std::size_t first, std::span<const std::int32_t> pages) override;
  void set_mask(std::int32_t row, std::span<const std::uint32_t> masks,
                const RowDrafts& drafts = {}) override;
  void set_followed(std::int32_t row, std::int32_t tokens) override;
  /// The rows of the next step and the number of tokens of each. Behind them there is none, up to
  /// `padded` rows. `follows`: the work of a draft model for each row, kernels::kFeeds or a number
  /// of tokens behind the step; none where it is empty. Only changes of the plan before are sent.
  void set_plan(std::span<const std::int32_t> active, std::span<const std::int32_t> counts,
                std::size_t padded, std::span<const std::int32_t> follows = {});

  /// Queues all changes.
  void flush();
  /// Forgets changes that were not sent, and what the device knows of the plan: after a failure.
  void discard() noexcept;

 private:
  static constexpr std::size_t kSlots = 4;
  static constexpr std::size_t kChangeWords = 1024;  ///< of one change; longer ones are cut
  struct Change {
    std::int64_t to = 0;   ///< in the state
    std::size_t from = 0;  ///< in words_
    std::size_t count = 0;
  };
  /// A block of changes on its way: the copy may still read it.
  struct Slot {
    PinnedBuffer host;
    Array device;
    std::optional<Event> copied;
  };

  void begin_row(std::int32_t row);
  void set_word(std::int32_t row, kernels::RowWord word, std::int32_t value);
  void add(std::int64_t to, std::span<const std::int32_t> words);
  void clear() noexcept;
  std::size_t send(std::size_t first);

  kernels::StateLayout layout_;
  Stream stream_;
  Array state_;
  std::array<Slot, kSlots> slots_;
  std::size_t next_slot_ = 0;
  std::vector<Change> changes_;
  std::vector<std::int32_t> words_;
  std::vector<std::int32_t> set_rows_;  ///< by changes that were not sent
  /// The plan on the device after the changes.
  std::vector<std::int32_t> active_, counts_, follows_;
  bool plan_known_ = true;
};

}  // namespace kernwright::engine
