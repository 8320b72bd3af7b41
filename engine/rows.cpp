// Collects changes of rows and sends them in blocks of page-locked memory.
#include "engine/rows.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "memory/transfer.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

namespace kernwright::engine {

namespace {

constexpr std::size_t kSlotWords = std::size_t{1} << 16;
constexpr std::size_t kWordsOfChange = 3;

kernels::StateLayout checked(const kernels::StateLayout& layout) {
  if (layout.max_rows < 1 || layout.capacity < 1 || layout.page_size < 1)
    throw InvalidArgument(
        format("an engine has at least one row of one token in pages of one "
               "token, not {} rows of {} tokens in pages of {}",
               layout.max_rows, layout.capacity, layout.page_size));
  if (layout.words() > std::numeric_limits<std::int32_t>::max())
    throw InvalidArgument(
        format("{} rows of {} tokens are more than 2^31 words: take fewer or "
               "shorter rows",
               layout.max_rows, layout.capacity));
  return layout;
}

}  // namespace

Rows::Rows(Device& device, const kernels::StateLayout& layout, const Stream& stream)
    : layout_(checked(layout)),
      stream_(stream),
      state_(Array::empty(device, {layout_.words()}, ScalarType::int32, stream)) {
  fill(device, state_.address(), 0, 4, static_cast<std::size_t>(state_.size()), stream);
  // No row takes part until a plan says so.
  fill(device, state_.address(), 0xffffffff, 4, static_cast<std::size_t>(layout_.max_rows), stream);
  for (Slot& slot : slots_) {
    slot.host = PinnedBuffer(device, kSlotWords * sizeof(std::int32_t));
    slot.device =
        Array::empty(device, {static_cast<std::int64_t>(kSlotWords)}, ScalarType::int32, stream);
  }
  active_.assign(static_cast<std::size_t>(layout_.max_rows), -1);
  counts_.assign(static_cast<std::size_t>(layout_.max_rows), 0);
  follows_ = counts_;
}

void Rows::set_row(std::int32_t row, const RowStart& start) {
  begin_row(row);
  std::array<std::int32_t, static_cast<std::size_t>(kernels::RowWord::count)> words{};
  const auto set = [&](kernels::RowWord word, auto value) {
    words[static_cast<std::size_t>(word)] = std::bit_cast<std::int32_t>(value);
  };
  const Sampling& sampling = start.sampling;
  set(kernels::RowWord::length, static_cast<std::int32_t>(start.tokens.size()));
  set(kernels::RowWord::computed, start.computed);
  set(kernels::RowWord::followed, start.followed);
  set(kernels::RowWord::temperature, sampling.temperature);
  set(kernels::RowWord::top_k, sampling.top_k);
  set(kernels::RowWord::top_p, sampling.top_p);
  set(kernels::RowWord::min_p, sampling.min_p);
  set(kernels::RowWord::repetition_penalty, sampling.repetition_penalty);
  set(kernels::RowWord::presence_penalty, sampling.presence_penalty);
  set(kernels::RowWord::frequency_penalty, sampling.frequency_penalty);
  set(kernels::RowWord::prompt_length, start.prompt_length);
  set(kernels::RowWord::seed_low, static_cast<std::uint32_t>(sampling.seed));
  set(kernels::RowWord::seed_high, static_cast<std::uint32_t>(sampling.seed >> 32));
  set(kernels::RowWord::biased, static_cast<std::int32_t>(start.biases.size()));
  set(kernels::RowWord::adapter, start.adapter);
  set(kernels::RowWord::long_text, start.is_long ? 1 : 0);
  add(layout_.row_at(row), words);
  add(layout_.row_at(row) + layout_.tokens_at(), start.tokens);
  std::vector<std::int32_t> biased;
  for (const Bias& bias : start.biases) {
    biased.push_back(bias.token);
    biased.push_back(std::bit_cast<std::int32_t>(bias.value));
  }
  add(layout_.row_at(row) + layout_.biases_at(), biased);
}

void Rows::set_mask(std::int32_t row, std::span<const std::uint32_t> masks,
                    const RowDrafts& drafts) {
  begin_row(row);
  const std::vector<std::int32_t> words(masks.begin(), masks.end());
  const auto count = static_cast<std::int32_t>(drafts.tokens.size());
  set_word(row, kernels::RowWord::masked, masks.empty() ? 0 : 1 + count);
  add(layout_.row_at(row) + layout_.mask_at(), words);
  if (count == 0) return;
  set_word(row, kernels::RowWord::drafts, count);
  add(layout_.row_at(row) + layout_.tokens_at() + drafts.length, drafts.tokens);
}

/// Sends the collected changes if one of them has this row: changes of one block must not overlap.
void Rows::begin_row(std::int32_t row) {
  if (std::ranges::find(set_rows_, row) != set_rows_.end()) flush();
  set_rows_.push_back(row);
}

void Rows::set_pages(std::int32_t row, std::size_t first, std::span<const std::int32_t> pages) {
  add(layout_.row_at(row) + layout_.pages_at() + static_cast<std::int64_t>(first), pages);
}

void Rows::set_followed(std::int32_t row, std::int32_t tokens) {
  begin_row(row);
  set_word(row, kernels::RowWord::followed, tokens);
}

void Rows::set_word(std::int32_t row, kernels::RowWord word, std::int32_t value) {
  add(layout_.row_at(row) + static_cast<std::int64_t>(word), std::span(&value, 1));
}

void Rows::set_plan(std::span<const std::int32_t> active, std::span<const std::int32_t> counts,
                    std::size_t padded, std::span<const std::int32_t> follows) {
  bool same = plan_known_, same_follows = plan_known_;
  const auto follow_of = [&](std::size_t i) { return i < follows.size() ? follows[i] : 0; };
  for (std::size_t i = 0; i < padded && (same || same_follows); ++i) {
    same = same && (i < active.size() ? active_[i] == active[i] && counts_[i] == counts[i]
                                      : active_[i] == -1);
    same_follows = same_follows && follows_[i] == follow_of(i);
  }
  plan_known_ = true;
  for (std::size_t i = 0; i < padded; ++i) {
    active_[i] = i < active.size() ? active[i] : -1;
    counts_[i] = i < active.size() ? counts[i] : 0;
    follows_[i] = follow_of(i);
  }
  if (!same) {
    add(layout_.active_at(), std::span(active_).first(padded));
    add(layout_.count_at(), std::span(counts_).first(padded));
  }
  if (!same_follows) add(layout_.follow_at(), std::span(follows_).first(padded));
}

void Rows::add(std::int64_t to, std::span<const std::int32_t> words) {
  for (std::size_t at = 0; at < words.size(); at += kChangeWords) {
    const auto part = words.subspan(at, std::min(kChangeWords, words.size() - at));
    changes_.push_back({to + static_cast<std::int64_t>(at), words_.size(), part.size()});
    words_.insert(words_.end(), part.begin(), part.end());
  }
}

void Rows::flush() {
  for (std::size_t first = 0; first < changes_.size();) first = send(first);
  clear();
}

void Rows::clear() noexcept {
  changes_.clear();
  words_.clear();
  set_rows_.clear();
}

void Rows::discard() noexcept {
  clear();
  plan_known_ = false;
}

/// Sends changes from `first` on, as many as a slot holds. Returns the first one left.
std::size_t Rows::send(std::size_t first) {
  std::size_t end = first, used = 0;
  while (end < changes_.size() && used + kWordsOfChange + changes_[end].count <= kSlotWords) {
    used += kWordsOfChange + changes_[end].count;
    ++end;
  }
  Slot& slot = slots_[next_slot_];
  if (slot.copied) slot.copied->synchronize();
  auto* const block = static_cast<std::int32_t*>(slot.host.data());
  std::size_t at = kWordsOfChange * (end - first);
  for (std::size_t i = first; i < end; ++i) {
    const Change& change = changes_[i];
    std::int32_t* const head = block + kWordsOfChange * (i - first);
    head[0] = static_cast<std::int32_t>(change.to);
    head[1] = static_cast<std::int32_t>(at);
    head[2] = static_cast<std::int32_t>(change.count);
    std::memcpy(block + at, words_.data() + change.from, change.count * sizeof(std::int32_t));
    at += change.count;
  }
  Device& device = state_.device();
  copy_to_device(device, slot.device.address(), block, at * sizeof(std::int32_t), stream_);
  if (!slot.copied) slot.copied.emplace(device, false);
  slot.copied->record(stream_);
  kernels::apply_changes(state_, slot.device, static_cast<std::int32_t>(end - first), stream_);
  next_slot_ = (next_slot_ + 1) % kSlots;
  return end;
}

}  // namespace kernwright::engine
