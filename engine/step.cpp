// Buffers of steps, their leading parts, and the way of results to the host.
#include "engine/step.h"

#include "base/errors.h"
#include "base/format.h"
#include "core/device.h"
#include "memory/transfer.h"

#include <stdexcept>

namespace kernwright::engine {

namespace {

Array leading(const Array& array, std::int64_t count) { return array.slice(0, 0, count, 1); }

}  // namespace

Step::Step(Rows& rows, std::int32_t tokens, std::int32_t detail_words, const Stream& stream,
           std::int32_t drafts)
    : rows_(rows), stream_(stream) {
  Device& device = rows.state().device();
  const kernels::StateLayout& layout = rows.layout();
  if (tokens < layout.max_rows)
    throw InvalidArgument(
        format("a step of {} rows has at least as many tokens, not {}", layout.max_rows, tokens));
  const auto zeros = [&](Shape shape, ScalarType type) {
    Array made = Array::empty(device, std::move(shape), type, stream);
    fill(device, made.address(), 0, 4, made.nbytes() / 4, stream);
    return made;
  };
  const std::int64_t most = layout.max_rows, outputs = most * (1 + std::int64_t{drafts});
  for (Array* each : {&all_.tokens, &all_.positions, &all_.token_rows, &all_.adapters,
                      &all_.long_texts, &all_.slots})
    *each = zeros({tokens}, ScalarType::int32);
  for (Array* each : {&all_.last, &all_.places, &all_.top_k})
    *each = zeros({outputs}, ScalarType::int32);
  for (Array* each : {&all_.temperature, &all_.top_p, &all_.min_p, &all_.repetition_penalty,
                      &all_.presence_penalty, &all_.frequency_penalty})
    *each = zeros({outputs}, ScalarType::float32);
  all_.lengths = zeros({most}, ScalarType::int32);
  all_.query_starts = zeros({most + 1}, ScalarType::int32);
  all_.page_table = zeros({most, layout.pages()}, ScalarType::int32);
  all_.seeds = zeros({outputs}, ScalarType::uint64);
  if (detail_words < 0)
    throw InvalidArgument(format("details of a token have no {} words", detail_words));
  results_ = zeros({outputs, 1 + std::int64_t{detail_words}}, ScalarType::int32);
  for (Results& slot : slots_) slot.host = PinnedBuffer(device, results_.nbytes());
}

kernels::StepArrays Step::arrays(std::int32_t rows, std::int32_t tokens,
                                 std::int32_t drafts) const {
  if (rows < 1 || rows > rows_.layout().max_rows || tokens < rows || tokens > max_tokens())
    throw InvalidArgument(
        format("a step has from 1 to {} rows and from that to {} tokens, not {} "
               "rows and {} tokens",
               rows_.layout().max_rows, max_tokens(), rows, tokens));
  const std::int64_t outputs = rows * (1 + std::int64_t{drafts});
  if (drafts < 0 || outputs > all_.last.size())
    throw InvalidArgument(
        format("a step of {} rows has no place for {} drafts of each", rows, drafts));
  kernels::StepArrays made = all_;
  for (Array* each : {&made.tokens, &made.positions, &made.token_rows, &made.adapters,
                      &made.long_texts, &made.slots})
    *each = leading(*each, tokens);
  made.query_starts = leading(made.query_starts, rows + 1);
  for (Array* each : {&made.lengths, &made.page_table}) *each = leading(*each, rows);
  for (Array* each : {&made.last, &made.places, &made.temperature, &made.top_p, &made.min_p,
                      &made.repetition_penalty, &made.presence_penalty, &made.frequency_penalty,
                      &made.top_k, &made.seeds})
    *each = leading(*each, outputs);
  return made;
}

void Step::draft(std::int32_t rows, const kernels::NgramLengths& lengths,
                 const Stream& stream) const {
  kernels::draft_ngram(rows_.state(), rows_.layout(), rows, lengths, stream);
}

void Step::feed_draft(std::int32_t rows, std::int32_t number, const Array* sampled,
                      std::int32_t vocabulary, const Stream& stream) const {
  kernels::feed_draft(rows_.state(), rows_.layout(), arrays(rows, rows), number, sampled,
                      vocabulary, stream);
}

void Step::begin_catch_up(std::int32_t rows, std::int32_t tokens, std::int32_t vocabulary,
                          const Stream& stream, bool extends) const {
  kernels::begin_catch_up(rows_.state(), rows_.layout(), arrays(rows, tokens), vocabulary, extends,
                          stream);
}

void Step::end_catch_up(std::int32_t rows, const Stream& stream) const {
  kernels::end_catch_up(rows_.state(), rows_.layout(), rows, stream);
}

void Step::begin(std::int32_t rows, std::int32_t tokens, const Stream& stream,
                 std::int32_t drafts) const {
  kernels::begin_step(rows_.state(), rows_.layout(), arrays(rows, tokens, drafts), stream);
}

void Step::penalize(const Array& logits, std::int32_t rows, const Stream& stream) const {
  kernels::apply_penalties(rows_.state(), rows_.layout(), logits, rows, stream);
}

void Step::mask(const Array& logits, std::int32_t rows, const Stream& stream) const {
  kernels::apply_masks(rows_.state(), rows_.layout(), logits, rows, stream);
}

void Step::end(const Array& sampled, std::int32_t rows, const Array* logits, const Array* details,
               const Stream& stream) const {
  const std::int64_t outputs = sampled.ndim() == 1 ? sampled.size() : 0;
  if (outputs < 1 || outputs > all_.last.size())
    throw InvalidArgument(format("sampled has a token for each of up to {} outputs, not {}",
                                 all_.last.size(), sampled.identify()));
  kernels::end_step(rows_.state(), rows_.layout(), sampled, logits, details,
                    leading(results_, outputs), rows, stream);
}

void Step::queue_results(std::int32_t outputs) {
  if (unread_ == kSlots) throw std::logic_error("results of a step would be lost");
  Results& slot = slots_[next_];
  slot.outputs = static_cast<std::size_t>(outputs);
  copy_to_host(results_.device(), slot.host.data(), results_.address(),
               slot.outputs * row_words() * sizeof(std::int32_t), stream_);
  if (!slot.copied) slot.copied.emplace(results_.device(), false);
  slot.copied->record(stream_);
  next_ = (next_ + 1) % kSlots;
  ++unread_;
}

std::span<const std::int32_t> Step::read_results() {
  if (unread_ == 0) throw std::logic_error("no results of a step are on their way");
  const Results& slot = slots_[(next_ + kSlots - unread_) % kSlots];
  slot.copied->synchronize();
  --unread_;
  return {static_cast<const std::int32_t*>(slot.host.data()), slot.outputs * row_words()};
}

}  // namespace kernwright::engine
