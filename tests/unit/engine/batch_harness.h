// A batch over a device of the test, which keeps what each page has and how tokens follow.
#pragma once

#include "base/errors.h"
#include "engine/batch.h"
#include "kernels_src/steps/step_state.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <map>
#include <random>
#include <set>
#include <utility>
#include <vector>

namespace kernwright::testing {

using Text = std::vector<std::int32_t>;
inline constexpr std::int32_t kTokens = 7;
/// Added to the adapter of pages of long texts.
inline constexpr std::int32_t kLong = 100;

/// The token behind a text, where all are allowed; else the next one that is.
inline std::int32_t next_token(const Text& text, std::uint64_t seed) {
  std::uint64_t sum = seed;
  for (const std::int32_t token : text) sum = sum * 31 + static_cast<std::uint64_t>(token) + 1;
  return static_cast<std::int32_t>(sum % kTokens);
}

/// The tokens that a guide allows behind a text.
inline engine::TokenMask guide_mask(const Text& text) {
  engine::TokenMask mask(kTokens, true);
  for (std::int32_t token = 0; token < kTokens; ++token) {
    if ((static_cast<std::size_t>(token) + text.size()) % 3 == 0) mask.forbid(std::span(&token, 1));
  }
  return mask;
}

/// The new tokens of the first choice of a request that runs alone, `most` at most.
inline Text expected(const engine::Request& request, std::size_t most) {
  const auto& stop = request.stop_tokens;
  const auto& bad = request.constraints.bad_tokens;
  Text text = request.prompt, made;
  const auto allowed = [&](std::int32_t token) {
    if (std::ranges::count(bad, token) > 0) return false;
    if (std::ssize(made) < request.min_tokens && std::ranges::count(stop, token) > 0) return false;
    return request.first_mask.is_empty() || guide_mask(text).allows(token);
  };
  while (made.size() < most) {
    std::int32_t token = next_token(text, request.sampling.seed);
    while (!allowed(token)) token = (token + 1) % kTokens;
    text.push_back(token);
    made.push_back(token);
    if (std::ranges::count(stop, token) > 0) break;
  }
  return made;
}

/// Rows as a device has them. A page keeps, for each place, the whole text up to there: what
/// attention would read; and the adapter that it was computed with.
class FakeDevice final : public engine::RowStates {
 public:
  FakeDevice(std::int32_t page_size, std::int32_t short_length)
      : page_size_(page_size), short_length_(short_length) {}

  void set_row(std::int32_t row, const engine::RowStart& start) override {
    REQUIRE(start.is_long == (short_length_ > 0 && std::ssize(start.tokens) > short_length_));
    rows_[row] = {Text(start.tokens.begin(), start.tokens.end()),
                  {},
                  start.computed,
                  start.sampling.seed,
                  {},
                  start.adapter + (start.is_long ? kLong : 0),
                  start.followed};
  }
  void set_pages(std::int32_t row, std::size_t first,
                 std::span<const std::int32_t> pages) override {
    Text& table = rows_.at(row).pages;
    REQUIRE(first == table.size());
    table.insert(table.end(), pages.begin(), pages.end());
  }
  void set_followed(std::int32_t row, std::int32_t tokens) override {
    rows_.at(row).followed = tokens;
  }
  void set_mask(std::int32_t row, std::span<const std::uint32_t> masks,
                const engine::RowDrafts& drafts) override {
    Row& changed = rows_.at(row);
    changed.masks.clear();
    for (const std::uint32_t& word : masks)
      changed.masks.emplace_back(kTokens, std::span(&word, 1));
    changed.guesses.assign(drafts.tokens.begin(), drafts.tokens.end());
    if (!drafts.tokens.empty()) {
      REQUIRE(drafts.length == std::ssize(changed.tokens));
      REQUIRE(masks.size() == 1 + drafts.tokens.size());
    }
  }

  /// Runs a step; its results, a word for each part and for each of its drafts.
  Text run(const Text& active, const Text& counts, const engine::StepPlan& plan) {
    const engine::Bucket& bucket = plan.bucket;
    Text results;
    for (std::size_t i = 0; i < active.size(); ++i) {
      Row& row = rows_.at(active[i]);
      const bool feeds = plan.parts[i].follows == kernels::kFeeds;
      if (feeds) REQUIRE(row.followed == row.computed);
      REQUIRE((!feeds || bucket.drafts > 0));
      REQUIRE((row.masks.empty() || row.computed + counts[i] < std::ssize(row.tokens) ||
               (bucket.features & engine::Features::masks) != 0));
      if (bucket.drafts > 0) {
        check_drafts(row, counts[i] - 1, bucket.drafts, feeds, results);
        continue;
      }
      for (std::int32_t k = 0; k < counts[i]; ++k) compute(row);
      results.push_back(kernels::kNoToken);
      if (row.computed != std::ssize(row.tokens)) continue;
      results.back() = sampled(row, row.tokens);
      row.tokens.push_back(results.back());
    }
    catch_up(active, plan);
    return results;
  }

  int caught_up = 0;  ///< tokens that a draft model computed behind a step

  /// What a page has, with its adapter, and a page with that.
  std::vector<Text> page(std::int32_t number) {
    std::vector<Text> made;
    for (std::int32_t i = 0; i < page_size_; ++i) made.push_back(pages_[{number, i}]);
    made.push_back({adapters_[number]});
    return made;
  }
  void set_page(std::int32_t number, const std::vector<Text>& texts) {
    for (std::int32_t i = 0; i < page_size_; ++i)
      pages_[{number, i}] = texts[static_cast<std::size_t>(i)];
    adapters_[number] = texts.back().front();
  }

  /// The page has the tokens of a text from `first` on.
  void write_page(std::int32_t page, const Text& text, std::int32_t first) {
    for (std::int32_t i = 0; i < page_size_; ++i)
      pages_[{page, i}] = Text(text.begin(), text.begin() + first + i + 1);
    adapters_[page] = -1;
  }
  bool has_page(std::int32_t page, const Text& text, std::int32_t first) {
    const std::int32_t last = page_size_ - 1;
    return pages_[{page, last}] == Text(text.begin(), text.begin() + first + page_size_);
  }

 private:
  struct Row {
    Text tokens, pages;
    std::int32_t computed = 0;
    std::uint64_t seed = 0;
    std::vector<engine::TokenMask> masks;  ///< of the next token, and behind each guess
    std::int32_t adapter = -1;
    std::int32_t followed = 0;
    Text guesses{};
  };

  /// A draft model has what `compute` leaves in pages of the model, in pages of its own.
  void follow(Row& row) {
    for (std::int32_t i = 0; i < row.followed; ++i) {
      const std::int32_t page = row.pages[static_cast<std::size_t>(i / page_size_)];
      REQUIRE(std::ranges::equal(followed_[{page, i % page_size_}],
                                 std::span(row.tokens).first(static_cast<std::size_t>(i) + 1)));
    }
    const std::int32_t at = row.followed++;
    REQUIRE(at < std::ssize(row.tokens));
    const std::int32_t page = row.pages.at(static_cast<std::size_t>(at / page_size_));
    followed_[{page, at % page_size_}] = Text(row.tokens.begin(), row.tokens.begin() + at + 1);
  }

  void catch_up(const Text& active, const engine::StepPlan& plan) {
    std::int32_t total = 0;
    for (std::size_t i = 0; i < active.size(); ++i) {
      Row& row = rows_.at(active[i]);
      const std::int32_t count = std::max(plan.parts[i].follows, 0);
      REQUIRE(row.followed + count <= row.computed);
      for (std::int32_t k = 0; k < count; ++k) follow(row);
      total += count;
    }
    REQUIRE((total > 0) == (plan.catch_up.rows > 0));
    REQUIRE((total == 0 ||
             (total <= plan.catch_up.tokens && std::ssize(plan.parts) <= plan.catch_up.rows)));
    caught_up += total;
  }

  /// The token behind a text, which is that of the row and `further` tokens.
  static std::int32_t sampled(const Row& row, const Text& text, std::size_t further = 0) {
    std::int32_t token = next_token(text, row.seed);
    if (row.masks.empty()) return token;
    const engine::TokenMask& mask = row.masks.at(std::min(further, row.masks.size() - 1));
    while (!mask.allows(token)) token = (token + 1) % kTokens;
    return token;
  }

  /// The row gets up to `most` drafts, most of them right, and keeps those that are.
  void check_drafts(Row& row, std::int32_t most, std::int32_t drafts, bool feeds, Text& results) {
    REQUIRE(row.computed + 1 == std::ssize(row.tokens));
    Text text = row.tokens;
    if (!row.guesses.empty()) {
      REQUIRE(std::ssize(row.guesses) == most);
      text.insert(text.end(), row.guesses.begin(), row.guesses.end());
      most = 0;
    }
    auto left = feeds ? drafts : static_cast<std::int32_t>(random_() % 5);
    for (; left > 0 && most > 0; --left, --most)
      text.push_back(random_() % 4 == 0 ? 0 : sampled(row, text));
    std::swap(row.tokens, text);
    while (row.computed < std::ssize(row.tokens)) compute(row);
    while (feeds && row.followed < std::ssize(row.tokens)) follow(row);
    std::swap(row.tokens, text);
    const std::size_t end = results.size() + static_cast<std::size_t>(drafts) + 1;
    const std::size_t before = row.tokens.size();
    for (bool goes_on = true; goes_on;) {
      const std::size_t place = row.tokens.size();
      results.push_back(sampled(row, row.tokens, place - before));
      row.tokens.push_back(results.back());
      goes_on = place < text.size() && text[place] == results.back();
    }
    row.guesses.clear();
    row.computed = static_cast<std::int32_t>(row.tokens.size()) - 1;
    if (feeds) row.followed = row.computed;
    for (std::size_t more = text.size() + 1; more > row.tokens.size(); --more)
      results.push_back(kernels::kNotTaken);
    results.resize(end, kernels::kNoToken);
  }

  void compute(Row& row) {
    const std::int32_t at = row.computed;
    REQUIRE(at < std::ssize(row.tokens));
    REQUIRE((short_length_ == 0 || row.adapter >= kLong - 1 || at < short_length_));
    REQUIRE(at / page_size_ < std::ssize(row.pages));
    for (std::int32_t i = 0; i < at; ++i) {
      const std::int32_t page = row.pages[static_cast<std::size_t>(i / page_size_)];
      const auto& before = pages_[{page, i % page_size_}];
      REQUIRE(adapters_[page] == row.adapter);
      REQUIRE(
          std::ranges::equal(before, std::span(row.tokens).first(static_cast<std::size_t>(i) + 1)));
    }
    const std::int32_t page = row.pages[static_cast<std::size_t>(at / page_size_)];
    pages_[{page, at % page_size_}] = Text(row.tokens.begin(), row.tokens.begin() + at + 1);
    adapters_[page] = row.adapter;
    ++row.computed;
  }

  const std::int32_t page_size_, short_length_;
  std::mt19937 random_{5};
  std::map<std::int32_t, Row> rows_;
  std::map<std::pair<std::int32_t, std::int32_t>, Text> pages_, followed_;
  std::map<std::int32_t, std::int32_t> adapters_;  ///< of pages
};

/// A batch whose results are read one step late. The masks of guided sequences come when
/// send_mask() is called, each only once.
class Harness {
 public:
  using Key = std::pair<std::uint64_t, std::int32_t>;  ///< a request, and which choice of it

  explicit Harness(const engine::BatchOptions& options, std::int32_t host_slots = 0)
      : device(options.pages.page_size, options.short_length),
        batch(options, device),
        host_(static_cast<std::size_t>(host_slots)) {
    if (host_slots > 0) batch.use_host(host_slots);
  }

  std::uint64_t submit(engine::Request request) {
    batch.require_possible(request);
    request.constraints.prepare(kTokens, request.min_tokens, request.stop_tokens);
    const engine::TokenMask asked = request.first_mask;
    if (!asked.is_empty()) request.constraints.guide(request.first_mask);
    requests[++last_] = request;
    batch.submit(last_, std::move(request));
    return last_;
  }

  void step() {
    const engine::StepPlan plan = batch.plan();
    if (!plan.parts.empty()) {
      REQUIRE(plan.tokens <= batch.options().schedule.max_tokens);
      REQUIRE(std::ssize(plan.parts) <= batch.options().max_rows);
      Text active, counts;
      batch.commit(plan, active, counts);
      REQUIRE(std::set(active.begin(), active.end()).size() == active.size());
      load();
      unread_.push_back({plan, device.run(active, counts, plan)});
      ++steps;
      draft_steps += plan.bucket.drafts > 0 ? 1 : 0;
    }
    if (unread_.size() > (plan.parts.empty() ? 0U : 1U)) receive();
    save();
    collect();
  }

  /// Sends one of the masks that sequences wait for: the guide's, or one that allows no token.
  /// False where none waits.
  bool send_mask(bool allowed = true) {
    if (wanted_masks_.empty()) return false;
    const Key key = wanted_masks_.front();
    wanted_masks_.pop_front();
    const auto produced = static_cast<std::int32_t>(texts[key].size());
    Text text = requests.at(key.first).prompt;
    text.insert(text.end(), texts[key].begin(), texts[key].end());
    engine::Inbox::NextMask next = {key.first, key.second, guide_mask(text), produced};
    if (!allowed) next.mask = engine::TokenMask(kTokens, false);
    const std::int32_t drafts = batch.options().drafts.tokens;
    for (std::int32_t i = random_() % 3 == 0 ? 0 : drafts + 2; allowed && drafts > 0 && i > 0;
         --i) {
      std::int32_t token = next_token(text, requests.at(key.first).sampling.seed + random_() % 2);
      while (!guide_mask(text).allows(token)) token = (token + 1) % kTokens;
      next.drafts.push_back(token);
      text.push_back(token);
      next.masks.push_back(guide_mask(text));
    }
    // One that comes late changes nothing.
    batch.set_mask({key.first, key.second, engine::TokenMask(kTokens, false), produced - 1});
    batch.set_mask(std::move(next));
    collect();
    return true;
  }

  /// The oldest results have numbers that are not finite.
  void spoil_results() {
    if (unread_.empty()) return;
    for (std::int32_t& result : unread_.front().results) {
      if (result >= 0) result = kernels::kNoNumber;
    }
  }

  void fail_all() {
    unread_.clear();
    batch.end_all(engine::Finish::failed, "a test");
    collect();
  }

  bool restore(const Text& text);  ///< to the prefix cache; false where it has no place

  void collect() {
    for (const engine::TokenEvent& event : batch.events()) {
      const Key key = {event.request, event.choice};
      REQUIRE(ends.count(key) == 0);
      if (event.token >= 0) texts[key].push_back(event.token);
      if (event.finish != engine::Finish::none) {
        ends[key] = event.finish;
        ended.push_back(key);
        std::erase(wanted_masks_, key);
      } else if (!requests.at(event.request).first_mask.is_empty() &&
                 std::ranges::count(wanted_masks_, key) == 0) {
        wanted_masks_.push_back(key);
      }
    }
    batch.events().clear();
    const engine::BatchStats stats = batch.stats();
    REQUIRE(stats.started == stats.finished + stats.aborted + stats.failed + stats.running);
    REQUIRE(stats.started + stats.waiting == static_cast<std::int64_t>(last_));
    REQUIRE(stats.free_pages + stats.used_pages + stats.cached_pages ==
            batch.options().pages.total);
    REQUIRE(std::min({stats.free_pages, stats.used_pages, stats.cached_pages}) >= 0);
    REQUIRE(stats.host_pages <= std::ssize(host_));
    REQUIRE(stats.rows <= batch.options().max_rows);
    if (!batch.options().pages.prefix_cache) REQUIRE(stats.cached_pages == 0);
  }

  void drain() {
    for (int count = 0; batch.has_sequences(); ++count) {
      REQUIRE(count < 5000);
      while (send_mask()) continue;
      step();
    }
    // Steps of sequences that ended early.
    unread_.clear();
    CHECK(batch.stats().used_pages == 0);
    CHECK(batch.stats().running == 0);
  }

  /// Every text is what it would be alone, up to where it ended.
  void check_texts() {
    for (const auto& [key, finish] : ends) {
      const engine::Request& request = requests.at(key.first);
      const Text& made = texts[key];
      if (finish == engine::Finish::length) REQUIRE(std::ssize(made) == request.max_tokens);
      if (finish == engine::Finish::stop)
        REQUIRE(std::ranges::count(request.stop_tokens, made.back()) == 1);
      if (key.second == 0) REQUIRE(made == expected(request, made.size()));
    }
  }

  FakeDevice device;
  engine::Batch batch;
  std::map<std::uint64_t, engine::Request> requests;
  std::map<Key, Text> texts;
  std::map<Key, engine::Finish> ends;
  std::vector<Key> ended;  ///< in their order
  int steps = 0, draft_steps = 0;

 private:
  struct Unread {
    engine::StepPlan plan;
    Text results;
  };

  /// A page on its way to the host, and what it had when that began.
  struct Save {
    kernels::PageMove move;
    std::vector<Text> texts;
  };

  void load() {
    if (host_.empty()) return;
    const bool given_up = batch.take_given_up();
    const auto moves = batch.take_loads();
    if (given_up || !moves.empty()) end_saves();
    std::set<std::int32_t> pages;
    for (const auto& [page, slot] : moves) {
      REQUIRE(pages.insert(page).second);
      device.set_page(page, host_.at(static_cast<std::size_t>(slot)));
    }
  }
  /// Copies to the host last some steps, one batch of them at a time.
  void save() {
    if (host_.empty()) return;
    if (++steps_ % 3 == 0) end_saves();
    if (!saves_.empty()) return;
    std::set<std::int32_t> slots;
    for (const auto& move : batch.take_saves(5)) {
      REQUIRE(slots.insert(move.slot).second);
      saves_.push_back({move, device.page(move.page)});
    }
  }
  void end_saves() {
    for (const Save& each : saves_) {
      REQUIRE(device.page(each.move.page) == each.texts);  // nobody wrote to it meanwhile
      host_.at(static_cast<std::size_t>(each.move.slot)) = each.texts;
    }
    saves_.clear();
  }
  void receive() {
    const Unread& oldest = unread_.front();
    batch.receive(oldest.plan.parts, oldest.results, 1, oldest.plan.bucket.drafts);
    unread_.pop_front();
  }

  std::uint64_t last_ = 0;
  std::deque<Unread> unread_;
  std::deque<Key> wanted_masks_;
  std::mt19937 random_{11};
  std::vector<std::vector<Text>> host_;  ///< of each slot
  std::vector<Save> saves_;
  int steps_ = 0;
};

inline bool Harness::restore(const Text& text) {
  const std::int32_t size = batch.options().pages.page_size;
  const auto fill = [&](std::int32_t first, std::span<const std::int32_t> pages) {
    for (std::size_t i = 0; i < pages.size(); ++i)
      device.write_page(pages[i], text, (first + static_cast<std::int32_t>(i)) * size);
  };
  end_saves();
  bool had_place = true;
  try {
    batch.restore_pages(text, fill);
  } catch (const InvalidArgument&) {
    had_place = false;
  }
  collect();
  const Text pages = batch.cached_pages(text);
  if (had_place) REQUIRE(pages.size() == text.size() / static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < pages.size(); ++i)
    REQUIRE(device.has_page(pages[i], text, static_cast<std::int32_t>(i) * size));
  return had_place;
}

inline engine::BatchOptions options_of(std::int32_t rows, std::int32_t pages,
                                       bool prefix_cache = true, std::int32_t page_size = 2,
                                       bool deterministic = false, std::int32_t drafts = 0,
                                       std::int32_t draft_context = 0) {
  const std::int32_t tokens = rows * (1 + drafts) + 4;
  return {.max_rows = rows,
          .capacity = 40,
          .pages = {.total = pages,
                    .page_size = page_size,
                    .prefix_cache = prefix_cache,
                    .part = deterministic ? tokens : 0},
          .schedule = {.max_tokens = tokens, .deterministic = deterministic},
          .vocabulary = kTokens,
          .reserve_tokens = 4,
          .drafts = {.tokens = drafts, .always = true, .context = draft_context}};
}

inline engine::Request request_of(Text prompt, std::int32_t tokens) {
  engine::Request request;
  request.prompt = std::move(prompt);
  request.max_tokens = tokens;
  request.sampling.seed = 5;
  return request;
}

}  // namespace kernwright::testing
