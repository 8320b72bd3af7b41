// Rows and steps on the device against a model of them on the host.
#include "engine/step.h"

#include "base/errors.h"
#include "engine/mask.h"
#include "unit/kernels/kernels_fixture.h"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

using namespace kernwright;
using namespace kernwright::engine;
using kernels::kNoNumber;
using kernels::kNoToken;
using kernels::RowWord;
using kernels::StateLayout;
using test::device;

namespace {

template <typename T = std::int32_t>
std::vector<T> values_of(const Array& array, const Stream& stream) {
  std::vector<T> values(static_cast<std::size_t>(array.size()));
  array.to_host(values.data(), stream);
  return values;
}

/// A row as the host expects it.
struct HostRow {
  std::vector<std::int32_t> tokens, pages;
  std::int32_t computed = 0;
  Sampling sampling{};
  std::int32_t adapter = -1;
  bool is_long = false;
};

engine::RowStart start_of(const std::vector<std::int32_t>& prompt, const Sampling& sampling,
                          std::int32_t computed = 0) {
  return {.tokens = prompt,
          .prompt_length = static_cast<std::int32_t>(prompt.size()),
          .computed = computed,
          .sampling = sampling};
}

struct Fixture {
  explicit Fixture(const StateLayout& layout, std::int32_t tokens, std::int32_t details = 0)
      : stream(Stream::create(device())),
        rows(device(), layout, stream),
        step(rows, tokens, details, stream) {}
  ~Fixture() { stream.synchronize(); }
  Fixture(const Fixture&) = delete;
  Fixture& operator=(const Fixture&) = delete;

  Array on_device(const std::vector<std::int32_t>& values) const {
    return Array::from_host(device(), values.data(), {static_cast<std::int64_t>(values.size())},
                            ScalarType::int32);
  }
  std::int32_t word(std::int64_t at) const {
    return values_of(rows.state().slice(0, at, 1, 1), stream)[0];
  }

  Stream stream;
  Rows rows;
  Step step;
};

/// The token that row `row` gets with `length` tokens.
std::int32_t next_token(std::int32_t row, std::size_t length) {
  return row * 100 + static_cast<std::int32_t>(length);
}

void check_step(const Fixture& all, const std::vector<HostRow>& host,
                const std::vector<std::int32_t>& active, const std::vector<std::int32_t>& counts,
                std::int32_t rows, std::int32_t tokens) {
  const kernels::StepArrays step = all.step.arrays(rows, tokens);
  std::vector<std::int32_t> expected_tokens, positions, token_rows, adapters, long_texts,
      starts = {0}, lengths, last;
  for (std::int32_t b = 0; b < rows; ++b) {
    const bool used = b < static_cast<std::int32_t>(active.size());
    const auto place = static_cast<std::size_t>(b);
    const std::int32_t count = used ? counts[place] : 0;
    if (used) {
      const HostRow& row = host[static_cast<std::size_t>(active[place])];
      for (std::int32_t i = 0; i < count; ++i) {
        expected_tokens.push_back(row.tokens[static_cast<std::size_t>(row.computed + i)]);
        positions.push_back(row.computed + i);
        token_rows.push_back(b);
        adapters.push_back(row.adapter);
        long_texts.push_back(row.is_long ? 1 : 0);
      }
      lengths.push_back(row.computed + count);
    } else {
      lengths.push_back(0);
    }
    starts.push_back(static_cast<std::int32_t>(expected_tokens.size()));
    last.push_back(std::max(starts.back() - 1, 0));
  }
  const auto most = static_cast<std::size_t>(tokens);
  expected_tokens.resize(most, 0);
  positions.resize(most, 0);
  token_rows.resize(most, -1);
  adapters.resize(most, -1);
  long_texts.resize(most, 0);
  CHECK(values_of(step.tokens, all.stream) == expected_tokens);
  CHECK(values_of(step.positions, all.stream) == positions);
  CHECK(values_of(step.token_rows, all.stream) == token_rows);
  CHECK(values_of(step.adapters, all.stream) == adapters);
  CHECK(values_of(step.long_texts, all.stream) == long_texts);
  CHECK(values_of(step.query_starts, all.stream) == starts);
  CHECK(values_of(step.lengths, all.stream) == lengths);
  CHECK(values_of(step.last, all.stream) == last);
  const auto pages = values_of(step.page_table, all.stream);
  const auto temperature = values_of<float>(step.temperature, all.stream);
  const auto top_p = values_of<float>(step.top_p, all.stream);
  const auto top_k = values_of(step.top_k, all.stream);
  const auto seeds = values_of<std::uint64_t>(step.seeds, all.stream);
  const StateLayout& layout = all.rows.layout();
  for (std::size_t b = 0; b < static_cast<std::size_t>(rows); ++b) {
    const auto used =
        static_cast<std::size_t>((lengths[b] + layout.page_size - 1) / layout.page_size);
    const std::size_t first = b * static_cast<std::size_t>(layout.pages());
    const Sampling expected =
        b < active.size() ? host[static_cast<std::size_t>(active[b])].sampling : Sampling{};
    for (std::size_t i = 0; i < used; ++i)
      CHECK(pages[first + i] == host[static_cast<std::size_t>(active[b])].pages[i]);
    if (used < static_cast<std::size_t>(layout.pages())) CHECK(pages[first + used] == -1);
    CHECK(temperature[b] == expected.temperature);
    CHECK(top_p[b] == expected.top_p);
    CHECK(top_k[b] == expected.top_k);
    CHECK(seeds[b] == expected.seed);
  }
}

}  // namespace

TEST_CASE("steps: random rows, plans and results are those of a host model") {
  const StateLayout layout = {.max_rows = 6, .capacity = 50, .page_size = 8};
  Fixture all(layout, 64);
  std::mt19937 random(3);
  const auto pick = [&](int low, int high) {
    return low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
  };
  std::vector<HostRow> host(6);
  const auto reset = [&](std::size_t r) {
    HostRow& row = host[r];
    row.tokens.clear();
    for (int i = pick(1, 40); i > 0; --i) row.tokens.push_back(pick(0, 999));
    row.pages.clear();
    for (std::int64_t i = 0; i < layout.pages(); ++i) row.pages.push_back(pick(0, 99));
    row.computed = pick(0, static_cast<int>(row.tokens.size()) - 1);
    row.sampling = {.temperature = static_cast<float>(pick(0, 3)),
                    .top_k = pick(0, 9),
                    .top_p = 0.5f,
                    .seed = std::uint64_t{random()} << 32 | random()};
    row.adapter = pick(-1, 3);
    row.is_long = row.tokens.size() % 2 == 0;
    const auto at = static_cast<std::int32_t>(r);
    all.rows.set_row(at, {.tokens = row.tokens,
                          .prompt_length = static_cast<std::int32_t>(row.tokens.size()),
                          .computed = row.computed,
                          .sampling = row.sampling,
                          .adapter = row.adapter,
                          .is_long = row.is_long});
    all.rows.set_pages(at, 0, std::span(row.pages).first(2));
    all.rows.set_pages(at, 2, std::span(row.pages).subspan(2));
  };
  for (std::size_t r = 0; r < host.size(); ++r) reset(r);
  for (int round = 0; round < 25; ++round) {
    CAPTURE(round);
    std::vector<std::int32_t> active, counts;
    int total = 0;
    for (int r = 0; r < 6; ++r) {
      HostRow& row = host[static_cast<std::size_t>(r)];
      if (static_cast<int>(row.tokens.size()) == row.computed) reset(static_cast<std::size_t>(r));
      if (pick(0, 2) == 0) continue;
      const int due = static_cast<int>(row.tokens.size()) - row.computed;
      active.push_back(r);
      counts.push_back(std::min({due, 64 - total - 6, pick(1, 20)}));
      if (counts.back() < 1) counts.back() = 1;
      total += counts.back();
    }
    std::ranges::reverse(active);
    std::ranges::reverse(counts);
    const int used = static_cast<int>(active.size());
    const int rows = pick(std::max(used, 1), 6), tokens = pick(std::max(total, rows), 64);
    all.rows.set_plan(active, counts, static_cast<std::size_t>(rows));
    all.rows.flush();
    all.step.begin(rows, tokens, all.stream);
    check_step(all, host, active, counts, rows, tokens);

    std::vector<std::int32_t> sampled(static_cast<std::size_t>(rows), 7), expected;
    for (std::size_t b = 0; b < static_cast<std::size_t>(rows); ++b) {
      expected.push_back(kNoToken);
      if (b >= active.size()) continue;
      HostRow& row = host[static_cast<std::size_t>(active[b])];
      row.computed += counts[b];
      if (row.computed < static_cast<std::int32_t>(row.tokens.size())) continue;
      sampled[b] = expected[b] = next_token(active[b], row.tokens.size());
      if (row.tokens.size() < 50) row.tokens.push_back(sampled[b]);
    }
    all.step.end(all.on_device(sampled), rows, nullptr, nullptr, all.stream);
    all.step.queue_results(rows);
    const auto results = all.step.read_results();
    CHECK(std::vector(results.begin(), results.end()) == expected);
  }
}

TEST_CASE("steps: logits that are not finite give no token") {
  const StateLayout layout = {.max_rows = 3, .capacity = 8, .page_size = 4};
  Fixture all(layout, 8);
  const std::vector<std::int32_t> prompt = {5, 6}, active = {0, 1, 2}, counts = {2, 2, 2};
  for (std::int32_t row = 0; row < 3; ++row) all.rows.set_row(row, start_of(prompt, {}));
  all.rows.set_plan(active, counts, 3);
  all.rows.flush();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> values = {1, nan, nan, 2, -INFINITY, 0};
  const Array logits = Array::from_host(device(), values.data(), {3, 2}, ScalarType::float32);
  all.step.begin(3, 8, all.stream);
  all.step.end(all.on_device({0, 0, 0}), 3, &logits, nullptr, all.stream);
  all.step.queue_results(3);
  const auto results = all.step.read_results();
  CHECK(std::vector(results.begin(), results.end()) == std::vector{0, kNoNumber, kNoNumber});
  CHECK(all.word(layout.row_at(0) + static_cast<int>(RowWord::length)) == 3);
  CHECK(all.word(layout.row_at(1) + static_cast<int>(RowWord::length)) == 2);
}

TEST_CASE("steps: details go to the host beside their tokens") {
  const StateLayout layout = {.max_rows = 3, .capacity = 8, .page_size = 4};
  Fixture all(layout, 8, 3);
  const std::vector<std::int32_t> prompt = {5, 6}, active = {2, 0}, counts = {2, 1};
  for (std::int32_t row = 0; row < 3; ++row) all.rows.set_row(row, start_of(prompt, {}));
  all.rows.set_plan(active, counts, 2);
  all.rows.flush();
  const Array details = all.on_device({1, 2, 3, 4}).reshape({2, 2});
  all.step.begin(2, 3, all.stream);
  all.step.end(all.on_device({9, 8}), 2, nullptr, &details, all.stream);
  all.step.queue_results(2);
  const auto results = all.step.read_results();
  REQUIRE(all.step.row_words() == 4);
  CHECK(std::vector(results.begin(), results.begin() + 3) == std::vector{9, 1, 2});
  CHECK(std::vector(results.begin() + 4, results.begin() + 7) == std::vector{kNoToken, 3, 4});
  const Array wide = all.on_device({1, 2, 3, 4, 5, 6, 7, 8}).reshape({2, 4});
  CHECK_THROWS_AS(all.step.end(all.on_device({9, 8}), 2, nullptr, &wide, all.stream),
                  InvalidArgument);
}

TEST_CASE("steps: penalties lower the logits of a row's own tokens") {
  const StateLayout layout = {.max_rows = 3, .capacity = 16, .page_size = 4};
  Fixture all(layout, 16);
  std::vector<std::int32_t> tokens = {5, 5, 6, 33};
  const Sampling sampling = {
      .repetition_penalty = 2, .presence_penalty = 0.25f, .frequency_penalty = 0.5f};
  all.rows.set_row(1, start_of(tokens, sampling));
  all.rows.set_row(0, start_of(tokens, sampling));
  std::vector<std::int32_t> active = {1, 0}, counts = {4, 3};
  // The row generates 6, 6 and 2; its last token is due then.
  for (const std::int32_t token : {6, 6, 2}) {
    all.rows.set_plan(active, counts, 2);
    all.rows.flush();
    all.step.end(all.on_device({token, 0}), 2, nullptr, nullptr, all.stream);
    active = {1};
    counts = {1};
    tokens.push_back(token);
  }
  active = {1, 0, 2};
  counts = {1, 0, 0};
  all.rows.set_plan(active, counts, 3);
  all.rows.flush();
  std::vector<float> values(3 * 40);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 5) - 1.5f;
  const Array logits = Array::from_host(device(), values.data(), {3, 40}, ScalarType::float32);
  all.step.penalize(logits, 3, all.stream);
  for (const int token : {2, 5, 6, 33}) {
    float& x = values[static_cast<std::size_t>(token)];
    x = x > 0 ? x / 2 : x * 2;
    const auto often = std::count(tokens.begin() + 4, tokens.end(), token);
    x -= 0.5f * static_cast<float>(often) + (often > 0 ? 0.25f : 0.0f);
  }
  CHECK(values_of<float>(logits, all.stream) == values);
  const Array half = Array::empty(device(), {3, 40}, ScalarType::float16, all.stream);
  CHECK_THROWS_AS(all.step.penalize(half, 3, all.stream), InvalidArgument);
}

TEST_CASE("steps: biases and masks change the logits of rows that get a token") {
  constexpr std::int32_t vocabulary = 9000;  // three blocks of the kernel, the last one in part
  const StateLayout layout = {
      .max_rows = 4, .capacity = 8, .page_size = 4, .vocabulary = vocabulary, .biases = 4};
  Fixture all(layout, 16);
  const std::vector<std::int32_t> prompt = {5, 6};
  const std::vector<Bias> biases = {{0, 1.5f}, {4096, -2.0f}, {8999, 0.5f}, {70, 3.0f}};
  TokenMask mask(vocabulary, true);
  std::vector<std::int32_t> bad = {70, 31, 32, 4095};
  for (std::int32_t token = 5000; token < 8900; ++token) bad.push_back(token);
  mask.forbid(bad);
  for (std::int32_t row = 0; row < 4; ++row) {
    engine::RowStart start = start_of(prompt, {});
    if (row != 2) start.biases = biases;
    all.rows.set_row(row, start);
  }
  for (const std::int32_t row : {1, 2, 3}) all.rows.set_mask(row, mask.words());
  all.rows.set_mask(3, {});  // every token again
  const std::vector<std::int32_t> active = {2, 1, 3, 0}, counts = {2, 2, 2, 1};
  all.rows.set_plan(active, counts, 4);
  all.rows.flush();
  std::vector<float> values(4 * vocabulary);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7) - 3.0f;
  const Array logits =
      Array::from_host(device(), values.data(), {4, vocabulary}, ScalarType::float32);
  all.step.mask(logits, 4, all.stream);
  for (std::size_t b = 0; b < 3; ++b) {  // the last row waits for the rest of its prompt
    float* const row = values.data() + b * vocabulary;
    for (const Bias& bias : biases)
      if (active[b] != 2) row[bias.token] += bias.value;
    for (std::int32_t token = 0; token < vocabulary; ++token)
      if (active[b] != 3 && !mask.allows(token)) row[token] = -INFINITY;
  }
  CHECK(values_of<float>(logits, all.stream) == values);
  const Array narrow = Array::empty(device(), {4, 100}, ScalarType::float32, all.stream);
  CHECK_THROWS_AS(all.step.mask(narrow, 4, all.stream), InvalidArgument);
}

TEST_CASE("steps: results of two steps may be on their way") {
  Fixture all({.max_rows = 2, .capacity = 9, .page_size = 4}, 8);
  const std::vector<std::int32_t> prompt = {5}, active = {1}, counts = {1};
  all.rows.set_row(1, start_of(prompt, {}));
  all.rows.set_plan(active, counts, 1);
  all.rows.flush();
  for (const std::int32_t token : {11, 12}) {
    all.step.begin(1, 1, all.stream);
    all.step.end(all.on_device({token}), 1, nullptr, nullptr, all.stream);
    all.step.queue_results(1);
  }
  CHECK_THROWS_AS(all.step.queue_results(1), std::logic_error);
  CHECK(all.step.read_results()[0] == 11);
  CHECK(all.step.read_results()[0] == 12);
  CHECK_THROWS_AS(all.step.read_results(), std::logic_error);
}

TEST_CASE("rows: a prompt longer than a block of changes arrives whole") {
  const StateLayout layout = {.max_rows = 2, .capacity = 300'000, .page_size = 1000};
  Fixture all(layout, 4);
  std::vector<std::int32_t> prompt(250'001);
  for (std::size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<std::int32_t>(i * 7);
  all.rows.set_row(1, start_of(prompt, {}));
  // The same row once more, and another one: the last change counts.
  prompt[0] = 42;
  all.rows.set_row(1, start_of(prompt, {}, 3));
  all.rows.flush();
  const std::int64_t row = layout.row_at(1);
  CHECK(values_of(all.rows.state().slice(0, row + layout.tokens_at(), 250'001, 1), all.stream) ==
        prompt);
  CHECK(all.word(row + static_cast<int>(RowWord::computed)) == 3);
}

TEST_CASE("rows: an unchanged plan is not sent again") {
  const StateLayout layout{.max_rows = 4, .capacity = 9, .page_size = 4};
  Fixture all(layout, 8);
  const std::int64_t parts[] = {layout.active_at(), layout.count_at(), layout.follow_at()};
  // The parts of the plan whose words on the device are written over: rows, counts, follows.
  const auto sent = [&] {
    constexpr std::int32_t kMark = -77;
    for (const std::int64_t at : parts) {
      all.rows.state().slice(0, at, at + 1, 1).assign_from_host(&kMark, all.stream);
    }
    all.rows.flush();
    std::vector<bool> made;
    for (const std::int64_t at : parts) made.push_back(all.word(at) != kMark);
    return made;
  };
  using Parts = std::vector<bool>;
  const std::vector<std::int32_t> active = {2, 0}, counts = {1, 1};
  all.rows.set_plan(active, counts, 3);
  CHECK(sent() == Parts{true, true, false});
  all.rows.set_plan(active, counts, 3);
  all.rows.set_plan(active, counts, 4);
  CHECK(sent() == Parts{false, false, false});
  all.rows.discard();
  all.rows.set_plan(active, counts, 2);
  CHECK(sent() == Parts{true, true, true});
  const std::vector<std::int32_t> follows = {kernels::kFeeds, 5};
  all.rows.set_plan(active, counts, 2, follows);
  CHECK(sent() == Parts{false, false, true});
  all.rows.set_plan(active, counts, 2, follows);
  CHECK(sent() == Parts{false, false, false});
}

TEST_CASE("steps: limits that make no sense are refused") {
  const Stream stream = Stream::create(device());
  CHECK_THROWS_AS(Rows(device(), {.max_rows = 0, .capacity = 4, .page_size = 4}, stream),
                  InvalidArgument);
  CHECK_THROWS_AS(Rows(device(), {.max_rows = 65'536, .capacity = 65'536, .page_size = 4}, stream),
                  InvalidArgument);
  Fixture all({.max_rows = 4, .capacity = 9, .page_size = 4}, 8);
  CHECK_THROWS_AS(Step(all.rows, 3, 0, stream), InvalidArgument);
  CHECK_THROWS_AS(Step(all.rows, 8, -1, stream), InvalidArgument);
  CHECK_THROWS_AS(all.step.arrays(5, 8), InvalidArgument);
  CHECK_THROWS_AS(all.step.arrays(2, 1), InvalidArgument);
  CHECK_THROWS_AS(all.step.arrays(2, 9), InvalidArgument);
  CHECK_THROWS_AS(all.step.end(all.on_device({1, 2, 3, 4, 5}), 4, nullptr, nullptr, stream),
                  InvalidArgument);
}
