// Admits sequences, commits plans, launches steps and reads their tokens.
#include "engine/loop.h"

#include "base/errors.h"
#include "base/format.h"
#include "base/log_sink.h"
#include "core/device.h"

#include <algorithm>
#include <chrono>
#include <iterator>
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

LoopOptions completed(LoopOptions options) {
  options.layout.vocabulary = options.vocabulary;
  options.layout.biases = Constraints::kMostBiases;
  return options;
}

/// Adds the time of its life to a sum.
class HostTime {
 public:
  explicit HostTime(std::int64_t& sum) : sum_(sum) {}
  ~HostTime() {
    using namespace std::chrono;
    sum_ += duration_cast<nanoseconds>(steady_clock::now() - begin_).count();
  }
  HostTime(const HostTime&) = delete;
  HostTime& operator=(const HostTime&) = delete;

 private:
  std::int64_t& sum_;
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace

Loop::Loop(Device& device, const LoopOptions& options, Record record)
    : options_(completed(options)),
      record_(std::move(record)),
      buckets_(Buckets::of_limits(options.layout.max_rows, options.schedule.max_tokens)),
      stream_(Stream::create(device)),
      rows_(device, options_.layout, stream_),
      step_(rows_, options.schedule.max_tokens, options.detail_words, stream_),
      pages_(options.pages),
      prefixes_(pages_, options.layout.page_size) {
  for (std::int32_t row = options.layout.max_rows; row-- > 0;) free_rows_.push_back(row);
  publish();
}

Loop::~Loop() {
  try {
    stream_.synchronize();  // copies may still use page-locked memory
  } catch (const std::exception& error) {
    log_release_failure("the stream of an engine", error.what());
  }
}

// ---- requests

std::int32_t Loop::pages_for(std::int32_t tokens) const noexcept {
  return (tokens + options_.layout.page_size - 1) / options_.layout.page_size;
}

void Loop::require_possible(const Request& request) const {
  const std::int32_t capacity = options_.layout.capacity;
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
  if (pages_for(tokens) <= pages_.total()) return;
  const std::int64_t fitting = std::int64_t{pages_.total()} * options_.layout.page_size;
  throw InvalidArgument(
      format("a prompt of {} tokens with up to {} new ones needs {} pages of {} "
             "tokens, and the cache has {}: together {} tokens fit",
             length, tokens + 1 - length, pages_for(tokens), options_.layout.page_size,
             pages_.total(), fitting + 1));
}

std::uint64_t Loop::submit(Request request) {
  require_possible(request);
  request.constraints.prepare(options_.vocabulary, request.min_tokens, request.stop_tokens);
  std::ranges::sort(request.stop_tokens);
  return inbox_.submit(std::move(request));
}

void Loop::take_inbox() {
  Inbox::Contents taken = inbox_.take();
  for (auto& [number, request] : taken.submitted) enqueue(number, std::move(request));
  for (const Inbox::Cancel& cancel : taken.cancelled) {
    const auto found = requests_.find(cancel.request);
    if (found == requests_.end()) continue;
    const std::vector<SequencePtr> sequences = found->second.sequences;
    for (const SequencePtr& each : sequences) {
      if (cancel.choice < 0 || cancel.choice == each->choice) finish(*each, cancel.reason);
    }
  }
}

void Loop::enqueue(std::uint64_t number, Request&& request) {
  const auto source = std::make_shared<const Request>(std::move(request));
  std::vector<SequencePtr>& all = requests_[number].sequences;
  for (std::int32_t choice = 0; choice < source->choices; ++choice) {
    auto made = std::make_shared<Sequence>();
    made->request = number;
    made->choice = choice;
    made->source = source;
    made->seed = choice_seed(source->sampling.seed, choice);
    made->length = made->prompt_length();
    made->tokens = source->prompt;
    made->limit = std::min(source->max_tokens, options_.layout.capacity - made->length);
    all.push_back(made);
    waiting_.push_back(made);
    // The others share full pages of the first one. Each computes at least the last token itself.
    if (choice > 0 && shared_pages(made->length) > 0) {
      made->ready = false;
      all.front()->followers.push_back(made);
    }
  }
}

// ---- admission

void Loop::admit() {
  std::size_t kept = 0;
  bool blocked = false;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    const SequencePtr sequence = waiting_[i];
    // Nobody passes a sequence that waits for a row or for pages.
    if (!blocked && sequence->ready && admit_one(sequence)) continue;
    blocked = blocked || sequence->ready;
    waiting_[kept++] = sequence;
  }
  waiting_.resize(kept);
}

/// Pages of a prompt that another sequence may have computed: full ones, without the last token. A
/// deterministic engine computes prompts in parts of max_tokens, and shares whole parts.
std::int32_t Loop::shared_pages(std::int32_t prompt_length) const noexcept {
  const std::int32_t page_size = options_.layout.page_size;
  std::int32_t pages = (prompt_length - 1) / page_size;
  if (!options_.schedule.deterministic) return pages;
  while (pages * page_size % options_.schedule.max_tokens != 0) --pages;
  return pages;
}

bool Loop::admit_one(const SequencePtr& sequence) {
  if (free_rows_.empty()) return false;
  const bool is_new = options_.prefix_cache && sequence->pages.empty();
  if (is_new) {
    const auto most = static_cast<std::size_t>(shared_pages(sequence->prompt_length()));
    std::vector<std::int32_t> found = prefixes_.find(sequence->tokens, most);
    while (shared_pages(static_cast<std::int32_t>(found.size()) * options_.layout.page_size + 1) !=
           static_cast<std::int32_t>(found.size())) {
      pages_.release(found.back());
      found.pop_back();
    }
    sequence->pages = std::move(found);
    sequence->computed =
        static_cast<std::int32_t>(sequence->pages.size()) * options_.layout.page_size;
  }
  const auto held = static_cast<std::int32_t>(sequence->pages.size());
  const std::int32_t more = pages_for(sequence->most_computed()) - held;
  if (more > pages_.free() - promised_) prefixes_.free_up(promised_ + more);
  if (more > pages_.free() - promised_) {
    if (is_new) {
      for (const std::int32_t page : std::exchange(sequence->pages, {})) pages_.release(page);
      sequence->computed = 0;
    }
    return false;
  }
  sequence->shared = sequence->computed;
  stats_.shared_tokens += is_new ? sequence->computed : 0;
  stats_.prompt_tokens += sequence->prompt_length();
  start(requests_.at(sequence->request));
  sequence->row = free_rows_.back();
  free_rows_.pop_back();
  promised_ += more;
  Sampling sampling = sequence->source->sampling;
  sampling.seed = sequence->seed;
  rows_.set_row(sequence->row, sequence->source->prompt, sequence->computed, sampling,
                sequence->source->constraints.biases);
  running_.push_back(sequence);
  return true;
}

// ---- steps

Graph& Loop::graph_of(const Bucket& bucket) {
  const auto found = graphs_.find(bucket);
  if (found != graphs_.end()) return found->second;
  rows_.set_plan({}, {}, static_cast<std::size_t>(bucket.rows));
  rows_.flush();
  Graph made = record_(bucket);
  stats_.graphs = static_cast<std::int32_t>(graphs_.size()) + 1;
  return graphs_.emplace(bucket, std::move(made)).first->second;
}

void Loop::prepare(std::int32_t rows) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("prepare() of an engine in use: call it when no advance() is under way");
  if (rows < 1 || rows > options_.layout.max_rows)
    throw InvalidArgument(
        format("a step has from 1 to {} rows, not {}", options_.layout.max_rows, rows));
  graph_of(buckets_.decoding(rows));
}

void Loop::advance(std::vector<TokenEvent>& events) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("advance() of this engine runs in another thread already: use one thread");
  StepPlan plan;
  {
    const HostTime time(stats_.plan_ns);
    take_inbox();
    admit();
    plan = plan_step(running_, options_.schedule, buckets_);
  }
  Graph* const graph = plan.parts.empty() ? nullptr : &graph_of(plan.bucket);
  step_began_ = Clock::now().time_since_epoch().count();
  try {
    if (graph != nullptr) launch(plan, *graph);
    if (unread_.size() > (graph != nullptr ? 1U : 0U)) {
      read_oldest();
    } else if (graph == nullptr && !waiting_.empty()) {
      throw std::logic_error(format("{} sequences wait for nothing", waiting_.size()));
    }
  } catch (const std::exception& error) {
    step_began_ = 0;
    end_all(Finish::failed, error.what());
    publish();
    throw;
  }
  step_began_ = 0;
  return_events(events);
}

/// Lets other threads see the numbers.
void Loop::publish() {
  stats_.rows = static_cast<std::int32_t>(running_.size());
  stats_.waiting = static_cast<std::int32_t>(requests_.size()) - stats_.running;
  stats_.free_pages = pages_.free();
  stats_.cached_pages = pages_.idle();
  stats_.used_pages = pages_.used();
  const std::lock_guard lock(stats_mutex_);
  published_ = stats_;
}

void Loop::return_events(std::vector<TokenEvent>& events) {
  publish();
  inbox_.count_ended(std::ranges::count_if(
      events_, [](const TokenEvent& event) { return event.finish != Finish::none; }));
  std::ranges::move(events_, std::back_inserter(events));
  events_.clear();
}

std::chrono::nanoseconds Loop::step_age() const noexcept {
  const std::int64_t began = step_began_.load();
  if (began == 0) return {};
  return Clock::now().time_since_epoch() - Clock::duration(began);
}

void Loop::launch(const StepPlan& plan, Graph& graph) {
  {
    const HostTime time(stats_.plan_ns);
    commit(plan);
    rows_.set_plan(active_, counts_, static_cast<std::size_t>(plan.bucket.rows));
  }
  const HostTime time(stats_.launch_ns);
  rows_.flush();
  graph.launch(stream_);
  step_.queue_results(plan.bucket.rows);
  unread_.push_back(plan.parts);
  ++stats_.steps;
}

void Loop::commit(const StepPlan& plan) {
  active_.clear();
  counts_.clear();
  for (const StepPart& part : plan.parts) {
    Sequence& sequence = *part.sequence;
    give_pages(sequence, sequence.computed + part.count);
    active_.push_back(sequence.row);
    counts_.push_back(part.count);
    sequence.computed += part.count;
    if (part.yields) {
      send_mask(sequence);
      ++sequence.planned;
      ++sequence.length;
    }
    if (!sequence.followers.empty()) release_followers(sequence);
    if (options_.prefix_cache && !sequence.prompt_cached) cache_prompt(sequence);
  }
}

/// Gives the sequence pages for so many tokens, and sends them.
void Loop::give_pages(Sequence& sequence, std::int32_t tokens) {
  const auto wanted = static_cast<std::size_t>(pages_for(tokens));
  while (sequence.pages.size() < wanted) {
    sequence.pages.push_back(pages_.take());
    --promised_;
  }
  if (sequence.sent_pages == sequence.pages.size()) return;
  rows_.set_pages(sequence.row, sequence.sent_pages,
                  std::span(sequence.pages).subspan(sequence.sent_pages));
  sequence.sent_pages = sequence.pages.size();
}

/// The row gets the mask of the token that is planned next.
void Loop::send_mask(Sequence& sequence) {
  const TokenMask* const mask = sequence.next_mask();
  if (mask == sequence.sent_mask) return;
  rows_.set_mask(sequence.row, mask == nullptr ? std::span<const std::uint32_t>() : mask->words());
  sequence.sent_mask = mask;
}

/// The other choices begin once a step that computes what they share is planned: steps run in
/// order.
void Loop::release_followers(Sequence& sequence) {
  const std::int32_t page_size = options_.layout.page_size;
  const std::int32_t shared = shared_pages(sequence.prompt_length());
  if (sequence.computed < shared * page_size) return;
  for (const SequencePtr& each : sequence.followers) {
    if (each->finished) continue;
    each->pages.assign(sequence.pages.begin(), sequence.pages.begin() + shared);
    for (const std::int32_t page : each->pages) pages_.retain(page);
    each->computed = shared * page_size;
    each->ready = true;
  }
  sequence.followers.clear();
}

/// Others may share the full pages of a prompt once the steps that compute them are planned.
void Loop::cache_prompt(Sequence& sequence) {
  const std::int32_t full = sequence.prompt_length() / options_.layout.page_size;
  if (sequence.computed < full * options_.layout.page_size) return;
  prefixes_.add(sequence.source->prompt,
                std::span(sequence.pages).first(static_cast<std::size_t>(full)));
  sequence.prompt_cached = true;
}

/// Keeps the full pages of a text that ends.
void Loop::cache_text(const Sequence& sequence, Finish reason) {
  if (reason == Finish::bad_logits || reason == Finish::failed) {
    prefixes_.clear();  // nobody knows how many pages have numbers that are wrong
    return;
  }
  const auto known = std::min(sequence.tokens.size(), static_cast<std::size_t>(sequence.computed));
  const std::size_t full = known / static_cast<std::size_t>(options_.layout.page_size);
  prefixes_.add(sequence.tokens,
                std::span(sequence.pages).first(std::min(full, sequence.pages.size())));
}

void Loop::read_oldest() {
  const std::span<const std::int32_t> results = step_.read_results();
  const HostTime time(stats_.plan_ns);
  const std::vector<StepPart> parts = std::move(unread_.front());
  unread_.pop_front();
  for (std::size_t i = 0; i < parts.size(); ++i) {
    // A sequence that ended meanwhile ran this step for nothing.
    if (parts[i].yields && !parts[i].sequence->finished)
      receive(*parts[i].sequence, results.subspan(i * step_.row_words(), step_.row_words()));
  }
}

void Loop::receive(Sequence& sequence, std::span<const std::int32_t> result) {
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
                     sequence.shared});
}

// ---- ends

void Loop::start(Active& request) {
  if (std::exchange(request.started, true)) return;
  ++stats_.started;
  ++stats_.running;
}

void Loop::finish(Sequence& sequence, Finish reason, std::int32_t token,
                  std::vector<std::int32_t> details, const std::string& cause) {
  sequence.finished = true;
  if (options_.prefix_cache && sequence.row >= 0) cache_text(sequence, reason);
  const auto held = static_cast<std::int32_t>(sequence.pages.size());
  for (const std::int32_t page : sequence.pages) pages_.release(page);
  sequence.pages.clear();
  const auto same = [&](const SequencePtr& each) { return each.get() == &sequence; };
  const auto found = requests_.find(sequence.request);
  Active& request = found->second;
  const auto place = std::ranges::find_if(request.sequences, same);
  const SequencePtr alive = *place;
  request.sequences.erase(place);
  request.outcome = std::max(request.outcome, outcome_of(reason));
  if (request.sequences.empty()) {
    start(request);
    --stats_.running;
    ++(request.outcome == Outcome::finished  ? stats_.finished
       : request.outcome == Outcome::aborted ? stats_.aborted
                                             : stats_.failed);
    requests_.erase(found);
  }
  if (sequence.row >= 0) {
    promised_ -= pages_for(sequence.most_computed()) - held;
    free_rows_.push_back(std::exchange(sequence.row, -1));
    std::erase_if(running_, same);
  } else {
    std::erase_if(waiting_, same);
  }
  // Those that would have shared its pages share nothing.
  for (const SequencePtr& each : sequence.followers) each->ready = true;
  sequence.followers.clear();
  events_.push_back({sequence.request, sequence.choice, token, reason, std::move(details),
                     sequence.shared, cause});
}

void Loop::end_all(Finish reason, const std::string& cause) {
  rows_.discard();
  step_.discard_results();
  unread_.clear();
  while (!requests_.empty())
    finish(*requests_.begin()->second.sequences.front(), reason, -1, {}, cause);
}

void Loop::abandon(Finish reason, const std::string& cause, std::vector<TokenEvent>& events) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("abandon() of an engine in use: call it when no advance() is under way");
  take_inbox();
  end_all(reason, cause);
  return_events(events);
}

LoopStats Loop::stats() const {
  const std::int32_t arrived = inbox_.size();
  const std::lock_guard lock(stats_mutex_);
  LoopStats stats = published_;
  stats.waiting += arrived;
  return stats;
}

}  // namespace kernwright::engine
