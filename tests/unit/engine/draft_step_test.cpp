// Steps with drafts on the device: what is guessed, checked and kept, against a search on the host.
#include "base/errors.h"
#include "engine/step.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace kernwright;
using engine::Rows;
using engine::Sampling;
using engine::Step;
using kernels::kNoNumber;
using kernels::kNoToken;
using kernels::kNotTaken;
using kernels::NgramLengths;
using kernels::StateLayout;
using test::device;

namespace {

using Text = std::vector<std::int32_t>;

template <typename T = std::int32_t>
std::vector<T> read(const Array& array, const Stream& stream) {
  std::vector<T> values(static_cast<std::size_t>(array.size()));
  array.to_host(values.data(), stream);
  return values;
}

Array to_device(const Text& values) {
  return Array::from_host(device(), values.data(), {std::ssize(values)}, ScalarType::int32);
}

/// What followed the longest earlier place of the last tokens, `count` tokens or none.
Text guess(const Text& text, const NgramLengths& lengths, std::int32_t count) {
  const auto size = static_cast<std::int32_t>(text.size());
  std::int32_t best = 0, found = 0;
  for (std::int32_t end = 1; end < size; ++end) {
    std::int32_t same = 0;
    while (same < std::min(lengths.most, end) &&
           text[static_cast<std::size_t>(end - 1 - same)] ==
               text[static_cast<std::size_t>(size - 1 - same)])
      ++same;
    if (same >= lengths.least && same >= best) {
      best = same;
      found = end;
    }
  }
  if (found == 0 || count < 1) return {};
  Text copied = text;
  for (std::int32_t i = 0; i < count; ++i)
    copied.push_back(copied[static_cast<std::size_t>(found + i)]);
  return {copied.begin() + size, copied.end()};
}

struct Steps {
  Steps(const StateLayout& layout, std::int32_t tokens, std::int32_t details, std::int32_t drafts)
      : stream(Stream::create(device())),
        rows(device(), layout, stream),
        step(rows, tokens, details, stream, drafts) {}
  ~Steps() { stream.synchronize(); }
  Steps(const Steps&) = delete;
  Steps& operator=(const Steps&) = delete;

  void start(std::int32_t row, const Text& text, const Sampling& sampling = {}) {
    rows.set_row(row, {.tokens = text,
                       .prompt_length = static_cast<std::int32_t>(text.size()),
                       .computed = static_cast<std::int32_t>(text.size()) - 1,
                       .sampling = sampling});
  }
  /// The tokens of the first words of `results`, an output each.
  Text tokens_of(std::int32_t outputs) {
    step.queue_results(outputs);
    const auto results = step.read_results();
    Text tokens;
    for (std::size_t i = 0; i < results.size(); i += step.row_words()) tokens.push_back(results[i]);
    return tokens;
  }

  std::int32_t word(std::int32_t row, kernels::RowWord which) {
    const std::int64_t at = rows.layout().row_at(row) + static_cast<std::int64_t>(which);
    return read(rows.state().slice(0, at, 1, 1), stream).front();
  }

  Stream stream;
  Rows rows;
  Step step;
};

}  // namespace

TEST_CASE("draft steps: random texts get the drafts of a search, and keep what was sampled") {
  constexpr std::int32_t drafts = 3, capacity = 60;
  const StateLayout layout = {.max_rows = 4, .capacity = capacity, .page_size = 8};
  std::mt19937 random(11);
  const auto below = [&](unsigned most) { return static_cast<std::int32_t>(random() % most); };
  std::int32_t accepted = 0, rejected = 0, without = 0;
  for (int round = 0; round < 12; ++round) {
    CAPTURE(round);
    Steps all(layout, 16, 0, drafts);
    const NgramLengths lengths = {1 + below(2), 2 + below(3)};
    std::vector<Text> texts(4);
    for (std::int32_t row = 0; row < 4; ++row) {
      for (std::int32_t i = 1 + below(20); i > 0; --i)
        texts[static_cast<std::size_t>(row)].push_back(below(4));
      all.start(row, texts[static_cast<std::size_t>(row)]);
    }
    for (int steps = 0; steps < 8; ++steps) {
      const Text active = {2, 0, 3};
      const Text counts = {1 + drafts, 1 + below(1 + drafts), 1 + drafts};
      all.rows.set_plan(active, counts, 4);
      all.rows.flush();
      all.step.draft(4, lengths, all.stream);
      all.step.begin(4, 16, all.stream, drafts);
      Text tokens, places, last, starts = {0}, sampled, expected;
      for (std::size_t b = 0; b < 4; ++b) {
        Text* const text = b < 3 ? &texts[static_cast<std::size_t>(active[b])] : nullptr;
        const Text found = text == nullptr ? Text() : guess(*text, lengths, counts[b] - 1);
        const std::int32_t first = starts.back();
        if (text != nullptr) tokens.push_back(text->back());
        tokens.insert(tokens.end(), found.begin(), found.end());
        starts.push_back(static_cast<std::int32_t>(tokens.size()));
        without += text != nullptr && counts[b] > 1 && found.empty() ? 1 : 0;
        bool goes_on = text != nullptr;
        for (std::int32_t j = 0; j <= drafts; ++j) {
          const auto place = static_cast<std::size_t>(j);
          const std::int32_t own = std::min(j, static_cast<std::int32_t>(found.size()));
          last.push_back(text == nullptr ? std::max(first - 1, 0) : first + own);
          // Most drafts are right.
          const bool is_draft = place < found.size() && random() % 4 != 0;
          sampled.push_back(is_draft ? found[place] : below(4));
          if (text == nullptr || place > found.size()) {
            expected.push_back(kNoToken);
          } else if (!goes_on) {
            expected.push_back(kNotTaken);
            ++rejected;
          } else {
            expected.push_back(sampled.back());
            accepted += j > 0 ? 1 : 0;
            text->push_back(sampled.back());
            goes_on = place < found.size() && found[place] == sampled.back();
          }
        }
      }
      const kernels::StepArrays step = all.step.arrays(4, 16, drafts);
      tokens.resize(16, 0);
      CHECK(read(step.tokens, all.stream) == tokens);
      CHECK(read(step.query_starts, all.stream) == starts);
      CHECK(read(step.last, all.stream) == last);
      all.step.end(to_device(sampled), 4, nullptr, nullptr, all.stream);
      CHECK(all.tokens_of(16) == expected);
    }
  }
  CHECK(accepted > 50);
  CHECK(rejected > 50);
  CHECK(without > 3);
}

TEST_CASE("draft steps: each output has the place and the values of its row") {
  Steps all({.max_rows = 2, .capacity = 20, .page_size = 4}, 8, 0, 3);
  all.start(0, {1, 2, 1, 2, 1}, {.temperature = 0.5f, .top_k = 7, .top_p = 0.25f, .seed = 99});
  all.start(1, {1, 2, 3}, {.temperature = 2.0f, .top_k = 3, .top_p = 0.75f, .seed = 98});
  const Text active = {0, 1}, counts = {4, 4};
  all.rows.set_plan(active, counts, 2);
  all.rows.flush();
  all.step.draft(2, {1, 4}, all.stream);
  all.step.begin(2, 8, all.stream, 3);
  const kernels::StepArrays step = all.step.arrays(2, 8, 3);
  CHECK(read(step.places, all.stream) == Text{5, 6, 7, 8, 3, 3, 3, 3});
  CHECK(read(step.positions, all.stream) == Text{4, 5, 6, 7, 2, 0, 0, 0});
  CHECK(read(step.lengths, all.stream) == Text{8, 3});
  CHECK(read(step.top_k, all.stream) == Text{7, 7, 7, 7, 3, 3, 3, 3});
  const std::vector<float> temperatures = {0.5f, 0.5f, 0.5f, 0.5f, 2, 2, 2, 2};
  CHECK(read<float>(step.temperature, all.stream) == temperatures);
  const std::vector<std::uint64_t> seeds = {99, 99, 99, 99, 98, 98, 98, 98};
  CHECK(read<std::uint64_t>(step.seeds, all.stream) == seeds);
}

TEST_CASE("draft steps: penalties count the drafts before a token") {
  Steps all({.max_rows = 1, .capacity = 20, .page_size = 4}, 4, 0, 2);
  all.start(0, {5, 6, 5}, {.presence_penalty = 0.25f, .frequency_penalty = 0.5f});
  const Text active = {0}, counts = {3};
  all.rows.set_plan(active, counts, 1);
  all.rows.flush();
  all.step.draft(1, {1, 1}, all.stream);  // 6 and 5
  all.step.begin(1, 3, all.stream, 2);
  std::vector<float> values(3 * 8, 1.0f);
  const Array logits = Array::from_host(device(), values.data(), {3, 8}, ScalarType::float32);
  all.step.penalize(logits, 1, all.stream);
  values[8 + 6] -= 0.75f;
  values[16 + 6] -= 0.75f;
  values[16 + 5] -= 0.75f;
  CHECK(read<float>(logits, all.stream) == values);
}

TEST_CASE("draft steps: a guided row has its own drafts, and a mask behind each") {
  const StateLayout layout = {
      .max_rows = 2, .capacity = 12, .page_size = 4, .vocabulary = 40, .masks = 4};
  Steps all(layout, 8, 0, 3);
  const Text text = {5, 6, 5, 6}, drafts = {9, 8};
  for (const std::int32_t row : {0, 1}) all.start(row, text);
  std::vector<std::uint32_t> words;
  for (const std::int32_t allowed : {9, 8, 7}) {
    engine::TokenMask mask(40, false);
    mask.allow(std::span(&allowed, 1));
    words.insert(words.end(), mask.words().begin(), mask.words().end());
  }
  all.rows.set_mask(1, words, {4, drafts});
  const Text active = {0, 1}, counts = {4, 3};
  all.rows.set_plan(active, counts, 2);
  all.rows.flush();
  all.step.draft(2, {1, 3}, all.stream);
  all.step.begin(2, 8, all.stream, 3);
  const Text tokens = read(all.step.arrays(2, 8, 3).tokens, all.stream);
  CHECK(tokens == Text{6, 5, 6, 5, 6, 9, 8, 0});
  const std::vector<float> values(8 * 40, 1.0f);
  const Array logits = Array::from_host(device(), values.data(), {8, 40}, ScalarType::float32);
  all.step.mask(logits, 2, all.stream);
  const auto masked = read<float>(logits, all.stream);
  for (std::size_t i = 0; i < masked.size(); ++i) {
    const std::size_t output = i / 40, token = i % 40;
    const std::size_t allowed[] = {9, 8, 7, 7};
    CHECK((masked[i] == 1.0f) == (output < 4 || token == allowed[output - 4]));
  }
  // The second draft is not what was sampled; the row has no drafts of its own afterwards.
  all.step.end(to_device({5, 6, 5, 1, 9, 7, 3, 3}), 2, nullptr, nullptr, all.stream);
  CHECK(all.tokens_of(8) == Text{5, 6, 5, 1, 9, 7, kNotTaken, kNoToken});
  all.rows.set_plan(active, Text{1, 1}, 2);
  all.rows.flush();
  all.step.draft(2, {1, 3}, all.stream);
  all.step.begin(2, 8, all.stream, 3);
  CHECK(read(all.step.arrays(2, 8, 3).tokens, all.stream) == Text{1, 7, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("draft steps: a token without a finite logit ends what is taken") {
  Steps all({.max_rows = 1, .capacity = 20, .page_size = 4}, 4, 2, 3);
  all.start(0, {1, 2, 3, 1});
  const Text active = {0}, counts = {4};
  all.rows.set_plan(active, counts, 1);
  all.rows.flush();
  all.step.draft(1, {1, 1}, all.stream);  // 2, 3 and 1
  all.step.begin(1, 4, all.stream, 3);
  std::vector<float> values(4 * 4, 0.0f);
  values[4 + 3] = std::numeric_limits<float>::quiet_NaN();
  const Array logits = Array::from_host(device(), values.data(), {4, 4}, ScalarType::float32);
  const Array details = to_device({1, 2, 3, 4, 5, 6, 7, 8}).reshape({4, 2});
  all.step.end(to_device({2, 3, 1, 0}), 1, &logits, &details, all.stream);
  all.step.queue_results(4);
  const auto results = all.step.read_results();
  CHECK(std::vector(results.begin(), results.end()) ==
        Text{2, 1, 2, kNoNumber, 3, 4, kNotTaken, 5, 6, kNotTaken, 7, 8});
}

TEST_CASE("draft steps: a draft model reads the last token of rows, then the drafts it makes") {
  // Row 2 is not fed; row 3 has no place for a second draft; no row for the last entry.
  const StateLayout layout = {.max_rows = 4, .capacity = 20, .page_size = 2};
  Steps all(layout, 12, 0, 2);
  const std::vector<Text> texts = {{1, 2, 3}, {9, 9}, {4, 5, 6, 7, 8}, {3}};
  for (const std::int32_t row : {0, 1, 2}) {
    all.start(row, texts[static_cast<std::size_t>(row)], {.temperature = 0.5f, .seed = 7});
    const Text pages = {10 * row, 10 * row + 1, 10 * row + 2, 10 * row + 3};
    all.rows.set_pages(row, 0, pages);
  }
  const Text active = {0, 1, 2}, counts = {3, 1, 2};
  const Text follows = {kernels::kFeeds, 0, kernels::kFeeds};
  all.rows.set_plan(active, counts, 4, follows);
  all.rows.flush();
  const kernels::StepArrays step = all.step.arrays(4, 4);
  const auto table = [&](std::int64_t row) {
    Text pages = read(step.page_table.slice(0, row, 1, 1), all.stream);
    pages.resize(5);
    return pages;
  };
  all.step.feed_draft(4, 0, nullptr, 8, all.stream);
  CHECK(read(step.tokens, all.stream) == Text{3, 0, 0, 0});  // 8 is none of the vocabulary
  CHECK(read(step.positions, all.stream) == Text{2, 0, 4, 0});
  CHECK(read(step.lengths, all.stream) == Text{3, 0, 5, 0});
  CHECK(read(step.token_rows, all.stream) == Text{0, -1, 2, -1});
  CHECK(read<float>(step.temperature, all.stream) == std::vector<float>{0.5f, 0, 0.5f, 0});
  CHECK(read<std::uint64_t>(step.seeds, all.stream) == std::vector<std::uint64_t>{7, 0, 7, 0});
  CHECK(table(0) == Text{0, 1, 2, -1, 0});  // of 5 tokens
  CHECK(table(1).front() == -1);
  const Array first = to_device({6, 1, 5, 1}), second = to_device({2, 1, 4, 1});
  all.step.feed_draft(4, 1, &first, 8, all.stream);
  CHECK(read(step.tokens, all.stream) == Text{6, 0, 5, 0});
  CHECK(read(step.positions, all.stream) == Text{3, 0, 5, 0});
  const Text places = read(step.places, all.stream);
  CHECK(places[0] == 4);  // of the token that is drawn there
  CHECK(places[2] == 6);
  all.step.feed_draft(4, 2, &second, 8, all.stream);
  CHECK(read(step.tokens, all.stream) == Text{2, 0, 0, 0});
  CHECK(read(step.lengths, all.stream) == Text{5, 0, 0, 0});
  CHECK(table(2).front() == -1);
  all.step.begin(4, 12, all.stream, 2);
  const kernels::StepArrays checked = all.step.arrays(4, 12, 2);
  CHECK(read(checked.tokens, all.stream) == Text{3, 6, 2, 9, 8, 5, 0, 0, 0, 0, 0, 0});
  // The first draft of row 0 is right, that of row 2 is not.
  all.step.end(to_device({6, 7, 0, 1, 0, 0, 3, 0, 0, 0, 0, 0}), 4, nullptr, nullptr, all.stream);
  CHECK(all.tokens_of(12) == Text{6, 7, kNotTaken, 1, kNoToken, kNoToken, 3, kNotTaken, kNoToken,
                                  kNoToken, kNoToken, kNoToken});
  CHECK(all.word(0, kernels::RowWord::followed) == 4);
  CHECK(all.word(1, kernels::RowWord::followed) == 0);
  CHECK(all.word(2, kernels::RowWord::followed) == 5);
}

TEST_CASE("draft steps: a draft model catches up with as many computed tokens as the plan says") {
  Steps all({.max_rows = 4, .capacity = 20, .page_size = 2}, 12, 0, 2);
  all.start(0, {1, 2, 3, 4, 5});
  all.start(1, {6, 6});
  all.start(3, {7, 8, 9, 1});
  all.rows.flush();
  all.rows.set_followed(3, 1);
  all.rows.set_pages(3, 0, Text{5, 6});
  const Text active = {0, 1, 3}, counts = {1, 1, 1}, follows = {2, kernels::kFeeds, 9};
  all.rows.set_plan(active, counts, 4, follows);
  all.rows.flush();
  all.step.begin_catch_up(4, 8, 9, all.stream);
  const kernels::StepArrays step = all.step.arrays(4, 8);
  CHECK(read(step.tokens, all.stream) == Text{1, 2, 8, 0, 0, 0, 0, 0});  // 9 is none
  CHECK(read(step.positions, all.stream) == Text{0, 1, 1, 2, 0, 0, 0, 0});
  CHECK(read(step.token_rows, all.stream) == Text{0, 0, 2, 2, -1, -1, -1, -1});
  CHECK(read(step.query_starts, all.stream) == Text{0, 2, 2, 4, 4});
  CHECK(read(step.lengths, all.stream) == Text{2, 0, 3, 0});
  all.step.end_catch_up(4, all.stream);
  CHECK(all.word(0, kernels::RowWord::followed) == 2);
  CHECK(all.word(1, kernels::RowWord::followed) == 0);
  CHECK(all.word(3, kernels::RowWord::followed) == 3);
  CHECK(all.word(3, kernels::RowWord::computed) == 3);
}

TEST_CASE("draft steps: a head adds the entries that it lacks, then those of its drafts") {
  // Row 1 has all entries, row 2 has no computed token; no row for the last entry.
  Steps all({.max_rows = 4, .capacity = 20, .page_size = 2, .has_head = true}, 12, 0, 2);
  const std::vector<Text> texts = {{1, 2, 3, 4, 5}, {6, 6}, {3}};
  for (const std::int32_t row : {0, 1, 2}) {
    all.start(row, texts[static_cast<std::size_t>(row)], {.temperature = 0.5f, .seed = 7});
    const Text pages = {10 * row, 10 * row + 1, 10 * row + 2, 10 * row + 3};
    all.rows.set_pages(row, 0, pages);
  }
  all.rows.flush();
  all.rows.set_followed(0, 2);
  all.rows.set_followed(1, 1);
  const int feeds = kernels::kFeeds;
  all.rows.set_plan(Text{0, 1, 2}, Text{3, 3, 3}, 4, Text{feeds, feeds, feeds});
  all.rows.flush();
  all.step.begin_catch_up(4, 12, 9, all.stream, true);
  const kernels::StepArrays entries = all.step.arrays(4, 12), step = all.step.arrays(4, 4);
  CHECK(read(entries.tokens, all.stream) == Text{4, 5, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(read(entries.positions, all.stream) == Text{2, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(read(entries.slots, all.stream) == Text{3, 4, 21, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  CHECK(read(step.lengths, all.stream) == Text{4, 1, 0, 0});
  CHECK(read(step.last, all.stream) == Text{1, 2, 2, 2});
  Text places = read(step.places, all.stream);
  CHECK(std::vector(places.begin(), places.begin() + 2) == Text{5, 2});
  const Array first = to_device({7, 8, 1, 1}), second = to_device({2, 3, 1, 1});
  all.step.feed_draft(4, 1, &first, 9, all.stream);
  CHECK(read(step.tokens, all.stream) == Text{7, 8, 0, 0});
  CHECK(read(step.positions, all.stream) == Text{4, 1, 0, 0});
  CHECK(read(step.lengths, all.stream) == Text{5, 2, 0, 0});
  CHECK(read<float>(step.temperature, all.stream) == std::vector<float>{0.5f, 0.5f, 0.5f, 0});
  places = read(step.places, all.stream);
  CHECK(std::vector(places.begin(), places.begin() + 2) == Text{6, 3});
  CHECK(all.word(0, kernels::RowWord::followed) == 4);
  CHECK(all.word(2, kernels::RowWord::followed) == 0);
  all.step.feed_draft(4, 2, &second, 9, all.stream);
  all.step.begin(4, 12, all.stream, 2);
  CHECK(read(entries.tokens, all.stream) == Text{5, 7, 2, 6, 8, 3, 3, 0, 0, 0, 0, 0});
  all.step.end(to_device({7, 9, 0, 1, 0, 0, 4, 0, 0, 0, 0, 0}), 4, nullptr, nullptr, all.stream);
  CHECK(all.tokens_of(12) == Text{7, 9, kNotTaken, 1, kNotTaken, kNotTaken, 4, kNoToken, kNoToken,
                                  kNoToken, kNoToken, kNoToken});
  CHECK(all.word(0, kernels::RowWord::computed) == 6);
  CHECK(all.word(0, kernels::RowWord::followed) == 4);  // two entries behind
}

TEST_CASE(
    "draft steps: outputs behind a wrong draft are the next drafts, n-grams come behind them") {
  Steps all({.max_rows = 1, .capacity = 20, .page_size = 4, .keeps_guesses = true}, 4, 0, 3);
  all.start(0, {5, 6, 5, 6});
  const auto run = [&](std::int32_t drafts, const Text& sampled) {
    all.rows.set_plan(Text{0}, Text{1 + drafts}, 1);
    all.rows.flush();
    if (drafts > 0) all.step.draft(1, {1, 3}, all.stream);
    all.step.begin(1, 1 + drafts, all.stream, drafts);
    const Text tokens = read(all.step.arrays(1, 1 + drafts, drafts).tokens, all.stream);
    all.step.end(to_device(sampled), 1, nullptr, nullptr, all.stream);
    return tokens;
  };
  CHECK(run(3, {5, 1, 9, 8}) == Text{6, 5, 6, 5});
  CHECK(run(0, {4}) == Text{1});
  CHECK(run(3, {8, 4, 2, 3}) == Text{4, 8, 4, 4});  // 9 came late, and 4 stood nowhere before
  CHECK(run(3, {6, 6, 6, 6}) == Text{2, 3, 2, 2});
}

TEST_CASE("draft steps: wrong lengths and sizes are refused") {
  Steps all({.max_rows = 2, .capacity = 9, .page_size = 4}, 8, 0, 1);
  for (const NgramLengths lengths : {NgramLengths{0, 1}, NgramLengths{3, 2}, NgramLengths{1, 65}})
    CHECK_THROWS_AS(all.step.draft(1, lengths, all.stream), InvalidArgument);
  CHECK_THROWS_AS(all.step.draft(3, {1, 1}, all.stream), InvalidArgument);
  const Array tokens = to_device({1, 2});
  CHECK_THROWS_AS(all.step.feed_draft(2, 0, &tokens, 8, all.stream), InvalidArgument);
  CHECK_THROWS_AS(all.step.feed_draft(2, 1, nullptr, 8, all.stream), InvalidArgument);
  CHECK_THROWS_AS(all.step.feed_draft(1, 1, &tokens, 8, all.stream), InvalidArgument);
  CHECK_THROWS_AS(all.step.end_catch_up(3, all.stream), InvalidArgument);
  CHECK_THROWS_AS(all.step.begin_catch_up(2, 9, 8, all.stream), InvalidArgument);
  CHECK_THROWS_AS(all.step.arrays(2, 4, 2), InvalidArgument);
  CHECK_THROWS_AS(all.step.arrays(2, 4, -1), InvalidArgument);
  CHECK_THROWS_AS(all.step.end(to_device({1, 2, 3}), 2, nullptr, nullptr, all.stream),
                  InvalidArgument);
}
