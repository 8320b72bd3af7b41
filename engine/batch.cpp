// Admits, preempts and ends sequences, and keeps their pages and rows.
#include "engine/batch.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/steps/step_state.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace kernwright::engine {

namespace {

/// The seed of a choice of a request.
std::uint64_t choice_seed(std::uint64_t seed, std::int32_t choice) {
  if (choice == 0) return seed;
  std::uint64_t mixed = seed + static_cast<std::uint64_t>(choice) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
  mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
  return mixed ^ mixed >> 31;
}

}  // namespace

Batch::Batch(const BatchOptions& options, RowStates& rows)
    : options_(options),
      buckets_(Buckets::of_limits(options.max_rows, options.schedule.max_tokens)),
      rows_(rows),
      pages_(options.pages),
      drafts_(options.drafts, options.schedule, buckets_, rows, pages_) {
  for (std::int32_t row = options.max_rows; row-- > 0;) free_rows_.push_back(row);
}

// ---- requests

void Batch::require_possible(const Request& request) const {
  const std::int32_t capacity = options_.capacity;
  if (request.prompt.empty()) throw InvalidArgument("a prompt has at least one token, got none");
  if (request.prompt.size() >= static_cast<std::size_t>(capacity))
    throw InvalidArgument(
        format("a prompt of {} tokens leaves no place for a new one: a row has "
               "place for {} tokens",
               request.prompt.size(), capacity));
  for (const std::int32_t token : request.prompt) {
    if (token < 0 || token >= options_.vocabulary)
      throw InvalidArgument(format("token {} of a prompt is none of the vocabulary of {}", token,
                                   options_.vocabulary));
  }
  if (request.max_tokens < 1 || request.choices < 1)
    throw InvalidArgument(
        format("a request is for at least one token of one choice, not {} tokens "
               "of {} choices",
               request.max_tokens, request.choices));
  const auto length = static_cast<std::int32_t>(request.prompt.size());
  const std::int32_t tokens = length + std::min(request.max_tokens, capacity - length) - 1;
  const PageOptions& pages = options_.pages;
  if (pages_.pages_for(tokens) <= pages.total) return;
  throw InvalidArgument(
      format("a prompt of {} tokens with up to {} new ones needs {} pages of {} "
             "tokens, and the cache has {}: together {} tokens fit",
             length, tokens + 1 - length, pages_.pages_for(tokens), pages.page_size, pages.total,
             std::int64_t{pages.total} * pages.page_size + 1));
}

void Batch::submit(std::uint64_t number, Request&& request) {
  const auto source = std::make_shared<const Request>(std::move(request));
  std::vector<SequencePtr> all;
  for (std::int32_t choice = 0; choice < source->choices; ++choice) {
    auto made = std::make_shared<Sequence>();
    made->request = number;
    made->choice = choice;
    made->source = source;
    made->account = shares_.enter(source->user);
    made->seed = choice_seed(source->sampling.seed, choice);
    made->length = made->prompt_length();
    made->tokens = source->prompt;
    made->guide_mask = source->first_mask;
    made->limit = std::min(source->max_tokens, options_.capacity - made->length);
    made->short_length = options_.short_length;
    made->is_long = made->outgrows();
    all.push_back(made);
    // Other choices share full pages of the first one, and compute at least the last token of the
    // prompt themselves.
    if (choice > 0 && pages_.shared_pages(made->length) > 0) {
      all.front()->followers.push_back(made);
    } else {
      queue_.add(made);
    }
  }
  requests_.add(number, std::move(all));
}

void Batch::cancel(const Inbox::Cancel& cancel) {
  for (const SequencePtr& each : requests_.sequences(cancel.request)) {
    if (cancel.choice < 0 || cancel.choice == each->choice)
      finish(*each, cancel.reason, -1, {}, cancel.error);
  }
}

void Batch::set_mask(Inbox::NextMask&& next) {
  const SequencePtr found = requests_.find(next.request, next.choice);
  if (found == nullptr || !found->waits_for_mask) return;
  Sequence& sequence = *found;
  if (next.produced >= 0 && next.produced != sequence.produced) return;  // a later one comes
  sequence.guide_mask = std::move(next.mask);
  sequence.guide_mask.keep(sequence.source->constraints.mask);
  sequence.guesses = std::move(next.drafts);
  sequence.guess_masks = std::move(next.masks);
  const auto wrong = std::ranges::find_if(sequence.guess_masks, [&](TokenMask& each) {
    each.keep(sequence.source->constraints.mask);
    return !each.allows_any();
  });
  sequence.guesses.resize(static_cast<std::size_t>(wrong - sequence.guess_masks.begin()));
  sequence.waits_for_mask = false;
  sequence.sent_mask = nullptr;
  if (!sequence.guide_mask.allows_any())
    finish(sequence, Finish::bad_guide, -1, {},
           "no token is left of those that may come next: bad_tokens or allowed_tokens forbid "
           "them");
}

bool Batch::waits_for_masks() const noexcept {
  return std::ranges::any_of(running_, [](const auto& each) { return each->waits_for_mask; });
}

bool Batch::uses_adapter(std::int32_t slot) const noexcept { return requests_.uses_adapter(slot); }

void Batch::expire(Clock::time_point now) {
  while (const auto number = requests_.expired(now)) cancel({*number, -1, Finish::timeout});
}

// ---- admission

void Batch::admit() {
  while (const SequencePtr next = queue_.first()) {
    // Nobody passes a sequence that waits: for a row, for pages, or for the tokens of its last
    // step.
    if (next->planned != next->produced) break;
    next->is_long = next->is_long || next->outgrows();
    if (!admit_one(next) && !preempt_below(next->source->priority) &&
        !(running_.empty() && strip_waiting()))
      break;
  }
}

/// Pages that a sequence may take before another one is admitted.
std::int32_t Batch::demand(const Sequence& sequence) const noexcept {
  const std::int32_t soon =
      options_.schedule.deterministic
          ? sequence.most_computed()
          : std::min(sequence.most_computed(), sequence.length + options_.reserve_tokens);
  return std::max(pages_.pages_for(soon), static_cast<std::int32_t>(sequence.pages.size()));
}

/// Gives the first of the queue what the prefix cache has of it, and whether it has only that. It
/// keeps these pages until somebody needs them: the next plan looks only for further ones.
bool Batch::search(const SequencePtr& sequence) {
  if (searched_ != sequence) {
    if (searched_ != nullptr) pages_.release(*std::exchange(searched_, nullptr));
    if (!sequence->pages.empty()) return false;  // a choice has pages of the first one
    searched_ = sequence;
  }
  pages_.find(*sequence);
  return true;
}

/// Whether a running sequence computes the beginning of this one: it leaves the queue until then.
bool Batch::awaits_prefix(const SequencePtr& sequence) {
  if (!options_.pages.prefix_cache || sequence->preempted) return false;
  const auto leader = find_leader(*sequence, running_, pages_, options_.schedule);
  if (!leader) return false;
  queue_.remove(*sequence);
  pages_.release(*std::exchange(searched_, nullptr));
  sequence->had_turn = true;
  leader->sequence->prefix_waiters.push_back({sequence, leader->tokens});
  return true;
}

/// Queues the sequences again that waited for so many tokens of this one, or for fewer.
void Batch::release_waiters(Sequence& sequence, std::int32_t tokens) {
  std::erase_if(sequence.prefix_waiters, [&](const PrefixWaiter& each) {
    if (each.tokens > tokens) return false;
    if (!each.sequence->finished) queue_.add(each.sequence);
    return true;
  });
}

/// What is kept from this sequence for those in front of it that are not in the queue, as they wait
/// for pages of a running one: texts that had their turn, unless it has a higher priority; and
/// choices of earlier requests.
Batch::Claim Batch::claim_before(const Sequence& sequence) const noexcept {
  Claim claim;
  if (sequence.had_turn) return claim;
  const auto keep = [&](const Sequence& other, bool is_before, std::int32_t shared = 0) {
    if (other.finished || !is_before) return;
    ++claim.rows;
    claim.pages += std::max(demand(other) - shared, 0);
  };
  for (const SequencePtr& each : running_) {
    for (const auto& [other, tokens] : each->prefix_waiters)
      keep(*other, other->source->priority >= sequence.source->priority);
    for (const SequencePtr& other : each->followers)
      keep(*other, WaitingQueue::is_before(*other, sequence),
           pages_.shared_pages(other->prompt_length()));
  }
  return claim;
}

/// Whether the sequence left the queue: for a row, or for the beginning of its text.
bool Batch::admit_one(const SequencePtr& sequence) {
  const bool is_new = search(sequence);
  if (is_new && awaits_prefix(sequence)) return true;
  const Claim claim = claim_before(*sequence);
  if (free_rows_.size() <= claim.rows) return false;
  std::int32_t wanted =
      claim.pages + demand(*sequence) - static_cast<std::int32_t>(sequence->pages.size());
  for (const SequencePtr& each : running_)
    wanted += demand(*each) - static_cast<std::int32_t>(each->pages.size());
  if (wanted > pages_.available()) return false;
  searched_ = nullptr;
  if (is_new) pages_.load(*sequence);
  queue_.remove(*sequence);
  if (!sequence->preempted) {
    sequence->shared = sequence->computed;
    stats_.shared_tokens += is_new ? sequence->computed : 0;
    stats_.prompt_tokens += sequence->prompt_length();
    sequence->account->served += sequence->length - sequence->computed;
  } else {
    stats_.recomputed_tokens += sequence->length - sequence->computed;
  }
  requests_.start(sequence->request);
  sequence->preempted = false;
  sequence->followed = pages_.followed(*sequence);
  sequence->admitted = ++last_admitted_;
  sequence->row = free_rows_.back();
  free_rows_.pop_back();
  Sampling sampling = sequence->source->sampling;
  sampling.seed = sequence->seed;
  rows_.set_row(sequence->row, {.tokens = sequence->tokens,
                                .prompt_length = sequence->prompt_length(),
                                .computed = sequence->computed,
                                .followed = sequence->followed,
                                .sampling = sampling,
                                .biases = sequence->source->constraints.biases,
                                .adapter = sequence->source->adapter,
                                .is_long = sequence->is_long});
  sequence->sent_mask = nullptr;
  running_.push_back(sequence);
  return true;
}

// ---- preemption

/// The running sequence of the lowest priority, the newest of these.
Batch::SequencePtr Batch::victim() const {
  SequencePtr found;
  for (const SequencePtr& each : running_) {
    if (found == nullptr || each->source->priority <= found->source->priority) found = each;
  }
  return found;
}

bool Batch::preempt_below(std::int32_t priority) {
  const SequencePtr found = options_.schedule.deterministic ? nullptr : victim();
  if (found == nullptr || found->source->priority >= priority) return false;
  preempt(found);
  return true;
}

/// The sequence waits for a row again. Steps on their way may still bring tokens of it, and write
/// only to pages whose next owners come later on the stream.
void Batch::preempt(const SequencePtr& sequence) {
  ++stats_.preemptions;
  pages_.keep_text(*sequence);
  pages_.release(*sequence);
  release_waiters(*sequence, options_.capacity);
  sequence->preempted = true;
  free_rows_.push_back(std::exchange(sequence->row, -1));
  std::erase(running_, sequence);
  queue_.add(sequence);
}

/// Their pages go to the prefix cache as those of a short text, which they are.
void Batch::preempt_long() {
  const std::vector<SequencePtr> running = running_;
  for (const SequencePtr& each : running) {
    if (each->outgrows()) preempt(each);
  }
}

/// Releases the pages of waiting sequences: choices hold those that they share with the first one.
/// Whether there were some.
bool Batch::strip_waiting() {
  bool found = false;
  queue_.visit([&](Sequence& each) {
    found = found || !each.pages.empty();
    pages_.release(each);
  });
  return found;
}

// ---- steps

StepPlan Batch::plan() {
  preempt_long();
  admit();
  StepPlan made = preempting_plan();
  drafts_.plan(made);
  return made;
}

StepPlan Batch::preempting_plan() {
  while (true) {
    StepPlan made = plan_step(running_, options_.schedule, buckets_);
    const std::int32_t missing = pages_.missing(made);
    if (missing <= 0) return made;
    if (searched_ != nullptr && pages_.release_found(*searched_, missing)) continue;
    if (strip_waiting()) continue;
    if (running_.size() == 1)
      throw std::logic_error(format("a sequence of {} pages finds {} available",
                                    running_.front()->pages.size(), pages_.available()));
    preempt(victim());
  }
}

void Batch::commit(const StepPlan& plan, std::vector<std::int32_t>& active,
                   std::vector<std::int32_t>& counts) {
  active.clear();
  counts.clear();
  for (const StepPart& part : plan.parts) {
    Sequence& sequence = *part.sequence;
    pages_.give(sequence, sequence.computed + part.count);
    if (sequence.sent_pages != sequence.pages.size()) {
      rows_.set_pages(sequence.row, sequence.sent_pages,
                      std::span(sequence.pages).subspan(sequence.sent_pages));
      sequence.sent_pages = sequence.pages.size();
    }
    active.push_back(sequence.row);
    counts.push_back(part.count);
    sequence.computed += part.count;
    drafts_.commit(part);
    if (part.yields) {
      send_mask(sequence, part.drafts);
      sequence.waits_for_mask = !sequence.guide_mask.is_empty();
      sequence.planned += 1 + part.drafts;
      sequence.length += 1 + part.drafts;
      sequence.account->served += 1 + part.drafts;
    }
    if (!sequence.followers.empty()) release_followers(sequence);
    pages_.keep_prompt(sequence);
    release_waiters(sequence, sequence.computed);
  }
}

/// The row gets the mask of the token that is planned next. A guided one gets its drafts, too, and
/// the masks behind them.
void Batch::send_mask(Sequence& sequence, std::int32_t drafts) {
  const TokenMask* const mask = sequence.next_mask();
  if (mask == sequence.sent_mask) return;
  sequence.sent_mask = mask;
  std::vector<std::uint32_t> words;
  if (mask != nullptr) words.assign(mask->words().begin(), mask->words().end());
  const auto guesses = static_cast<std::size_t>(sequence.is_guided() ? drafts : 0);
  for (std::size_t i = 0; i < guesses; ++i) {
    const auto more = sequence.guess_masks[i].words();
    words.insert(words.end(), more.begin(), more.end());
  }
  rows_.set_mask(sequence.row, words,
                 {sequence.length, std::span(sequence.guesses).first(guesses)});
}

/// Other choices of the request begin once the step that computes their shared pages is planned:
/// steps run in order.
void Batch::release_followers(Sequence& sequence) {
  const std::int32_t shared = pages_.shared_pages(sequence.prompt_length());
  if (sequence.computed < shared * pages_.options().page_size) return;
  for (const SequencePtr& each : std::exchange(sequence.followers, {})) {
    if (each->finished) continue;
    pages_.share(sequence, *each);
    queue_.add(each);
  }
}

void Batch::receive(std::span<const StepPart> parts, std::span<const std::int32_t> results,
                    std::size_t words, std::int32_t drafts) {
  const auto outputs = static_cast<std::size_t>(1 + drafts);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // A sequence that ended meanwhile ran this step for nothing.
    if (!parts[i].yields || parts[i].sequence->finished) continue;
    const auto result = [&](std::size_t output) {
      return results.subspan((i * outputs + output) * words, words);
    };
    std::size_t known = 1, drafted = 1;  // outputs with a token or an error; with a draft before
    while (known < outputs && (result(known)[0] >= 0 || result(known)[0] == kernels::kNoNumber))
      ++known;
    for (drafted = known; drafted < outputs && result(drafted)[0] == kernels::kNotTaken;) ++drafted;
    correct(parts[i], static_cast<std::int32_t>(known), static_cast<std::int32_t>(drafted - 1));
    for (std::size_t j = 0; j < known && !parts[i].sequence->finished; ++j)
      receive_token(*parts[i].sequence, result(j));
  }
}

/// The step gave so many tokens, which were planned as the most that there may be.
void Batch::correct(const StepPart& part, std::int32_t tokens, std::int32_t drafted) {
  Sequence& sequence = *part.sequence;
  const std::int32_t missing = 1 + part.drafts - tokens;
  sequence.planned -= missing;
  sequence.length -= missing;
  if (sequence.row >= 0) {  // a preempted one has nothing computed
    sequence.computed -= missing;
    if (part.follows == kernels::kFeeds) sequence.followed -= missing;
  }
  if (part.drafts == 0) return;
  drafts_.observe(part, tokens);
  sequence.drafted += drafted;
  sequence.accepted += tokens - 1;
  stats_.drafts += drafted > 0 ? 1 : 0;
  stats_.drafted_tokens += drafted;
  stats_.accepted_tokens += tokens - 1;
}

void Batch::receive_token(Sequence& sequence, std::span<const std::int32_t> result) {
  const std::int32_t token = result[0];
  if (token == kernels::kNoNumber) return finish(sequence, Finish::bad_logits);
  if (token < 0)
    throw std::logic_error(format("a step gave no token to sequence {} of request {}",
                                  sequence.choice, sequence.request));
  ++sequence.produced;
  ++stats_.tokens;
  sequence.tokens.push_back(token);
  const Request& source = *sequence.source;
  std::vector<std::int32_t> details;
  if (source.wants_details) details.assign(result.begin() + 1, result.end());
  const bool stops = std::ranges::binary_search(source.stop_tokens, token);
  if (stops || sequence.produced == sequence.limit)
    return finish(sequence, stops ? Finish::stop : Finish::length, token, std::move(details));
  events_.push_back({sequence.request, sequence.choice, token, Finish::none, std::move(details),
                     sequence.shared, sequence.drafted, sequence.accepted});
}

// ---- ends

void Batch::finish(Sequence& sequence, Finish reason, std::int32_t token,
                   std::vector<std::int32_t> details, const std::string& cause) {
  sequence.finished = true;
  if (reason == Finish::bad_logits || reason == Finish::failed)
    pages_.clear_cache();  // nobody knows how many pages have numbers that are wrong
  else if (sequence.row >= 0)
    pages_.keep_text(sequence);
  pages_.release(sequence);
  if (searched_.get() == &sequence) searched_ = nullptr;
  const SequencePtr alive = requests_.end(sequence, outcome_of(reason));
  if (sequence.row >= 0) {
    free_rows_.push_back(std::exchange(sequence.row, -1));
    std::erase(running_, alive);
  } else {
    queue_.remove(sequence);
  }
  shares_.leave(sequence.account);
  // Choices that waited for pages of this sequence begin without shared ones.
  for (const SequencePtr& each : std::exchange(sequence.followers, {})) {
    if (!each->finished) queue_.add(each);
  }
  release_waiters(sequence, options_.capacity);
  events_.push_back({sequence.request, sequence.choice, token, reason, std::move(details),
                     sequence.shared, sequence.drafted, sequence.accepted, cause});
}

void Batch::end_all(Finish reason, const std::string& cause) {
  while (const SequencePtr each = requests_.any()) finish(*each, reason, -1, {}, cause);
}

// ---- pages on the host

std::vector<kernels::PageMove> Batch::take_loads() {
  std::vector<kernels::PageMove> moves = pages_.prefixes().take_loads();
  stats_.loaded_pages += std::ssize(moves);
  return moves;
}

std::vector<kernels::PageMove> Batch::take_saves(std::size_t most) {
  std::vector<kernels::PageMove> moves = pages_.prefixes().take_saves(most);
  stats_.saved_pages += std::ssize(moves);
  return moves;
}

BatchStats Batch::stats() const {
  BatchStats stats = stats_;
  static_cast<RequestCounts&>(stats) = requests_.counts();
  stats.host_pages = pages_.prefixes().host_size();
  stats.rows = static_cast<std::int32_t>(running_.size());
  stats.free_pages = pages_.pages().free();
  stats.cached_pages = pages_.pages().idle();
  stats.used_pages = pages_.pages().used();
  return stats;
}

}  // namespace kernwright::engine
