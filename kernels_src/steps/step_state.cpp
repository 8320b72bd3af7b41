// The state of sequences on the device: its layout, and the launches on it.
#include "kernels_src/steps/step_state.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/math.h"
#include "core/device.h"
#include "kernels_src/family.h"
#include "kernels_src/steps/step_state.cu.h"

#include <limits>
#include <vector>

namespace kernwright::kernels {

namespace {

constexpr std::uint32_t kStepThreads = 128;  // kThreads of the kernels
constexpr std::uint32_t kChangeThreads = 256;
constexpr std::uint32_t kDraftThreads = 256;
constexpr std::uint32_t kPenaltyThreads = 256;
constexpr std::uint32_t kMaskThreads = 256;
constexpr std::int64_t kMaskTokens = 4096;
constexpr std::int64_t kMostPenalised = std::int64_t{1} << 18;  // bits of 32 KB

/// State of the kernels.
struct StepState {
  CUdeviceptr words;
  std::int64_t rows_at, row_words;
  std::int32_t count_at, follow_at, pages_at, tokens_at, biases_at, mask_at, pages, page_size,
      capacity, head, keeps_guesses;
};

/// Results of the kernels.
struct StepResults {
  CUdeviceptr words = 0, details = 0;
  std::int64_t detail_stride = 0;
  std::int32_t row_words = 0, detail_words = 0, outputs = 1;
};

/// Step of the kernels.
struct StepOutput {
  CUdeviceptr tokens, positions, token_rows, adapters, long_texts, slots, query_starts, lengths,
      last, page_table, top_k;
  CUdeviceptr temperature, top_p, min_p, repetition, presence, frequency, seeds, places;
  std::int32_t rows, count, outputs, catches_up, vocabulary;
};

constexpr int kApply = 0, kBegin = 1, kEnd = 2, kPenalties = 3, kMasks = 4, kNgram = 5, kFeed = 6,
              kCaughtUp = 7;

const LazyKernel& step_kernel(int number) {
  static const auto& family = *new Family("step_state.cu", text::step_state_cu);
  return family.instance(InstanceKey().add(number, 4), [&] {
    // One compile makes all: each step needs most of them.
    const std::vector<std::string> names = {"apply_changes",   "begin_step",  "end_step",
                                            "apply_penalties", "apply_masks", "draft_ngram",
                                            "feed_draft",      "end_catch_up"};
    std::vector<std::string> ordered = {names[static_cast<std::size_t>(number)]};
    if (number == kApply) ordered = names;
    return ordered;
  });
}

StepState step_state(const Array& words, const StateLayout& layout) {
  if (words.type() != ScalarType::int32 || words.size() != layout.words() || !words.is_contiguous())
    throw InvalidArgument(format("the state of {} rows of {} tokens is {} words of int32, not {}",
                                 layout.max_rows, layout.capacity, layout.words(),
                                 words.identify()));
  return {.words = words.address(),
          .rows_at = layout.row_at(0),
          .row_words = layout.row_words(),
          .count_at = static_cast<std::int32_t>(layout.count_at()),
          .follow_at = static_cast<std::int32_t>(layout.follow_at()),
          .pages_at = static_cast<std::int32_t>(layout.pages_at()),
          .tokens_at = static_cast<std::int32_t>(layout.tokens_at()),
          .biases_at = static_cast<std::int32_t>(layout.biases_at()),
          .mask_at = static_cast<std::int32_t>(layout.mask_at()),
          .pages = static_cast<std::int32_t>(layout.pages()),
          .page_size = layout.page_size,
          .capacity = layout.capacity,
          .head = layout.has_head ? 1 : 0,
          .keeps_guesses = layout.keeps_guesses ? 1 : 0};
}

void require_rows(std::int64_t rows, const StateLayout& layout) {
  if (rows < 1 || rows > layout.max_rows)
    throw InvalidArgument(format("a step has from 1 to {} rows, not {}", layout.max_rows, rows));
}

/// How many logits each of `rows` rows has.
std::uint32_t output_count(std::int64_t outputs, std::int64_t rows, const StateLayout& layout) {
  require_rows(rows, layout);
  if (outputs < rows || outputs % rows != 0)
    throw InvalidArgument(
        format("each of {} rows of a step has as many outputs, not together {}", rows, outputs));
  return static_cast<std::uint32_t>(outputs / rows);
}

void require_logits(const Array& logits, std::int64_t outputs) {
  if (logits.type() != ScalarType::float32 || logits.ndim() != 2 || logits.shape()[0] != outputs ||
      logits.shape()[1] < 1 || logits.strides()[1] != 4)
    throw InvalidArgument(format("logits are float32 rows of shape ({}, vocabulary), not {}",
                                 outputs, logits.identify()));
}

/// The outputs of each row for logits of this shape.
std::uint32_t logit_outputs(const Array& logits, std::int64_t rows, const StateLayout& layout) {
  const std::int64_t outputs = logits.ndim() == 2 ? logits.shape()[0] : 0;
  const std::uint32_t each = output_count(outputs, rows, layout);
  require_logits(logits, outputs);
  return each;
}

void require_sampled(const Array& sampled, std::int64_t outputs) {
  if (sampled.type() != ScalarType::int32 || sampled.shape() != Shape{outputs} ||
      !sampled.is_contiguous())
    throw InvalidArgument(
        format("sampled tokens are int32 of shape ({},), not {}", outputs, sampled.identify()));
}

LaunchConfig step_config(std::int64_t blocks, std::uint32_t threads, const Array& state,
                         const Stream& stream) {
  LaunchConfig config;
  config.grid = {static_cast<std::uint32_t>(blocks)};
  config.block = {threads};
  config.stream = stream ? stream : Stream::legacy(state.device());
  return config;
}

}  // namespace

void apply_changes(const Array& state, const Array& block, std::int32_t count,
                   const Stream& stream) {
  if (count < 1) return;
  const LaunchConfig config = step_config(count, kChangeThreads, state, stream);
  launch(step_kernel(kApply).on(state.device()), config, state.address(), block.address());
  state.use_on(config.stream);
  block.use_on(config.stream);
}

void draft_ngram(const Array& state, const StateLayout& layout, std::int32_t rows,
                 const NgramLengths& lengths, const Stream& stream) {
  const StepState kernel_state = step_state(state, layout);
  require_rows(rows, layout);
  if (lengths.least < 1 || lengths.most < lengths.least || lengths.most > NgramLengths::kMost)
    throw InvalidArgument(
        format("an n-gram has from 1 to {} tokens, the shortest first: not {} to "
               "{}",
               NgramLengths::kMost, lengths.least, lengths.most));
  if (layout.capacity >= 1 << 24)
    throw InvalidArgument(
        format("n-grams are for rows below 2^24 tokens, not {}", layout.capacity));
  launch(step_kernel(kNgram).on(state.device()), step_config(rows, kDraftThreads, state, stream),
         kernel_state, lengths.least, lengths.most);
}

namespace {

/// The arrays of a step for a kernel.
StepOutput step_output(const StateLayout& layout, const StepArrays& step) {
  const std::int64_t rows = step.lengths.size(), tokens = step.tokens.size();
  const std::uint32_t outputs = output_count(step.last.size(), rows, layout);
  if (tokens < rows)
    throw InvalidArgument(format("a step of {} rows has as many tokens, not {}", rows, tokens));
  return {.tokens = step.tokens.address(),
          .positions = step.positions.address(),
          .token_rows = step.token_rows.address(),
          .adapters = step.adapters.address(),
          .long_texts = step.long_texts.address(),
          .slots = step.slots.address(),
          .query_starts = step.query_starts.address(),
          .lengths = step.lengths.address(),
          .last = step.last.address(),
          .page_table = step.page_table.address(),
          .top_k = step.top_k.address(),
          .temperature = step.temperature.address(),
          .top_p = step.top_p.address(),
          .min_p = step.min_p.address(),
          .repetition = step.repetition_penalty.address(),
          .presence = step.presence_penalty.address(),
          .frequency = step.frequency_penalty.address(),
          .seeds = step.seeds.address(),
          .places = step.places.address(),
          .rows = static_cast<std::int32_t>(rows),
          .count = static_cast<std::int32_t>(tokens),
          .outputs = static_cast<std::int32_t>(outputs),
          .catches_up = 0,
          .vocabulary = std::numeric_limits<std::int32_t>::max()};
}

void launch_begin(const Array& state, const StateLayout& layout, const StepOutput& output,
                  const Stream& stream) {
  launch(step_kernel(kBegin).on(state.device()),
         step_config(output.rows, kStepThreads, state, stream), step_state(state, layout), output);
}

}  // namespace

void begin_step(const Array& state, const StateLayout& layout, const StepArrays& step,
                const Stream& stream) {
  launch_begin(state, layout, step_output(layout, step), stream);
}

void begin_catch_up(const Array& state, const StateLayout& layout, const StepArrays& step,
                    std::int32_t vocabulary, bool extends, const Stream& stream) {
  StepOutput output = step_output(layout, step);
  output.catches_up = extends ? 2 : 1;
  output.vocabulary = vocabulary;
  launch_begin(state, layout, output, stream);
}

void end_catch_up(const Array& state, const StateLayout& layout, std::int32_t rows,
                  const Stream& stream) {
  const StepState kernel_state = step_state(state, layout);
  require_rows(rows, layout);
  launch(step_kernel(kCaughtUp).on(state.device()), step_config(1, kStepThreads, state, stream),
         kernel_state, rows);
}

void feed_draft(const Array& state, const StateLayout& layout, const StepArrays& step,
                std::int32_t number, const Array* sampled, std::int32_t vocabulary,
                const Stream& stream) {
  const StepState kernel_state = step_state(state, layout);
  StepOutput output = step_output(layout, step);
  output.vocabulary = vocabulary;
  if (number < 0 || (number > 0) != (sampled != nullptr))
    throw InvalidArgument(format("the first token of a row was not sampled, draft {} was", number));
  if (sampled != nullptr) require_sampled(*sampled, output.rows);
  const LaunchConfig config = step_config(output.rows, kStepThreads, state, stream);
  launch(step_kernel(kFeed).on(state.device()), config, kernel_state, output, number,
         sampled != nullptr ? sampled->address() : CUdeviceptr{0});
  if (sampled != nullptr) sampled->use_on(config.stream);
}

void apply_penalties(const Array& state, const StateLayout& layout, const Array& logits,
                     std::int32_t rows, const Stream& stream) {
  const StepState kernel_state = step_state(state, layout);
  const std::uint32_t outputs = logit_outputs(logits, rows, layout);
  const std::int64_t vocabulary = logits.shape()[1];
  if (vocabulary > kMostPenalised)
    throw InvalidArgument(format("penalties are for a vocabulary of at most {} tokens, not {}",
                                 kMostPenalised, vocabulary));
  LaunchConfig config = step_config(rows, kPenaltyThreads, state, stream);
  config.grid.y = outputs;
  config.shared_bytes = static_cast<std::uint32_t>((vocabulary + 31) / 32 * 4);
  launch(step_kernel(kPenalties).on(state.device()), config, kernel_state, logits.address(),
         logits.strides()[0] / 4, static_cast<std::int32_t>(vocabulary));
  logits.use_on(config.stream);
}

void apply_masks(const Array& state, const StateLayout& layout, const Array& logits,
                 std::int32_t rows, const Stream& stream) {
  const StepState kernel_state = step_state(state, layout);
  const std::uint32_t outputs = logit_outputs(logits, rows, layout);
  const std::int64_t vocabulary = logits.shape()[1];
  if (vocabulary != layout.vocabulary)
    throw InvalidArgument(format("masks of rows are for a vocabulary of {} tokens, not {}",
                                 layout.vocabulary, vocabulary));
  LaunchConfig config = step_config(rows, kMaskThreads, state, stream);
  config.grid.y = static_cast<std::uint32_t>(ceil_div(vocabulary, kMaskTokens));
  config.grid.z = outputs;
  launch(step_kernel(kMasks).on(state.device()), config, kernel_state, logits.address(),
         logits.strides()[0] / 4, static_cast<std::int32_t>(vocabulary));
  logits.use_on(config.stream);
}

void end_step(const Array& state, const StateLayout& layout, const Array& sampled,
              const Array* logits, const Array* details, const Array& results, std::int32_t rows,
              const Stream& stream) {
  const StepState kernel_state = step_state(state, layout);
  const std::int64_t outputs = results.shape()[0];
  const std::uint32_t row_outputs = output_count(outputs, rows, layout);
  require_sampled(sampled, outputs);
  if (logits != nullptr) require_logits(*logits, outputs);
  StepResults output = {.words = results.address(),
                        .row_words = static_cast<std::int32_t>(results.shape()[1]),
                        .outputs = static_cast<std::int32_t>(row_outputs)};
  if (details != nullptr) {
    if (details->type() != ScalarType::int32 || details->ndim() != 2 ||
        details->shape()[0] != outputs || details->shape()[1] >= results.shape()[1] ||
        details->strides()[1] != 4)
      throw InvalidArgument(format("details are int32 rows of shape ({}, at most {}), not {}",
                                   outputs, results.shape()[1] - 1, details->identify()));
    output.details = details->address();
    output.detail_stride = details->strides()[0] / 4;
    output.detail_words = static_cast<std::int32_t>(details->shape()[1]);
  }
  const CUdeviceptr read = logits != nullptr ? logits->address() : 0;
  const std::int64_t stride = logits != nullptr ? logits->strides()[0] / 4 : 0;
  const LaunchConfig config = step_config(rows, kStepThreads, state, stream);
  launch(step_kernel(kEnd).on(state.device()), config, kernel_state, sampled.address(), read,
         stride, output);
  sampled.use_on(config.stream);
  if (logits != nullptr) logits->use_on(config.stream);
  if (details != nullptr) details->use_on(config.stream);
}

}  // namespace kernwright::kernels
