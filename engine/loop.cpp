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

BatchOptions batch_options(const LoopOptions& options) {
  return {.max_rows = options.layout.max_rows,
          .capacity = options.layout.capacity,
          .pages = {.total = options.pages,
                    .page_size = options.layout.page_size,
                    .prefix_cache = options.prefix_cache,
                    .part = options.schedule.deterministic ? options.schedule.max_tokens : 0},
          .schedule = options.schedule,
          .vocabulary = options.vocabulary,
          .drafts = options.drafts,
          .short_length = options.short_length};
}

LoopOptions completed(LoopOptions options) {
  options.layout.vocabulary = options.vocabulary;
  options.layout.biases = Constraints::kMostBiases;
  options.layout.masks = 1 + options.drafts.tokens;
  options.layout.has_head = options.drafts.is_head;
  options.layout.keeps_guesses = options.drafts.keeps_guesses;
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

/// While it lives, step_age() counts from its beginning.
class StepTime {
 public:
  explicit StepTime(std::atomic<std::int64_t>& began) : began_(began) {
    began_ = std::chrono::steady_clock::now().time_since_epoch().count();
  }
  ~StepTime() { began_ = 0; }
  StepTime(const StepTime&) = delete;
  StepTime& operator=(const StepTime&) = delete;

 private:
  std::atomic<std::int64_t>& began_;
};

}  // namespace

Loop::Loop(Device& device, const LoopOptions& options, Record record)
    : options_(completed(options)),
      record_(std::move(record)),
      stream_(Stream::create(device)),
      rows_(device, options_.layout, stream_),
      step_(rows_, options.schedule.max_tokens, options.detail_words, stream_,
            options.drafts.tokens),
      batch_(batch_options(options), rows_),
      inbox_(options.queue_limit) {
  publish();
}

Loop::~Loop() {
  try {
    stream_.synchronize();  // copies may still use page-locked memory
  } catch (const std::exception& error) {
    log_release_failure("the stream of an engine", error.what());
  }
}

std::uint64_t Loop::submit(Request request) {
  batch_.require_possible(request);
  request.constraints.prepare(options_.vocabulary, request.min_tokens, request.stop_tokens);
  if (!request.first_mask.is_empty()) request.constraints.guide(request.first_mask);
  std::ranges::sort(request.stop_tokens);
  return inbox_.submit(std::move(request));
}

/// Takes what arrived.
void Loop::take_requests() {
  Inbox::Contents taken = inbox_.take();
  for (auto& [number, request] : taken.submitted) batch_.submit(number, std::move(request));
  for (const Inbox::Cancel& cancel : taken.cancelled) batch_.cancel(cancel);
  for (Inbox::NextMask& next : taken.masks) batch_.set_mask(std::move(next));
}

StepPlan Loop::next_plan() {
  const HostTime time(stats_.plan_ns);
  take_requests();
  batch_.expire(Clock::now());
  StepPlan plan = batch_.plan();
  count_started();
  return plan;
}

// ---- steps

Graph& Loop::graph_of(const Bucket& bucket) {
  const auto found = graphs_.find(bucket);
  if (found != graphs_.end()) return found->second;
  rows_.set_plan({}, {}, static_cast<std::size_t>(bucket.rows));
  {
    const StepTime waiting(step_began_);  // for copies of earlier steps; compiling does not count
    rows_.flush();
  }
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
  if (!options_.graphs) return;
  Bucket bucket = batch_.buckets().decoding(rows);
  graph_of(bucket);
  if (options_.drafts.tokens == 0) return;
  bucket.drafts = options_.drafts.tokens;
  bucket.tokens = bucket.outputs();
  if (bucket.tokens <= options_.schedule.max_tokens) graph_of(bucket);
}

void Loop::use_host(std::vector<Array> caches, std::size_t bytes) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("use_host() of an engine in use: call it before the first request");
  if (!options_.prefix_cache)
    throw InvalidArgument("a host cache keeps pages of the prefix cache, and there is none");
  host_.emplace(std::move(caches), bytes, stream_);
  batch_.use_host(host_->slots());
}

void Loop::advance(std::vector<TokenEvent>& events) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("advance() of this engine runs in another thread already: use one thread");
  const StepPlan plan = next_plan();
  const std::size_t known = graphs_.size() + done_.size();
  const bool computes = !plan.parts.empty();
  // What throws while it records changes no sequence yet.
  if (options_.graphs && computes) graph_of(plan.bucket);
  if (options_.graphs && plan.catch_up.rows > 0) graph_of(plan.catch_up);
  try {
    const StepTime running(step_began_);
    if (computes) launch(plan);
    if (unread_.size() > (computes ? 1U : 0U)) {
      read_oldest(graphs_.size() + done_.size() == known);
    } else if (!computes && batch_.events().empty() && batch_.has_sequences()) {
      if (!batch_.waits_for_masks()) throw std::logic_error("sequences wait for nothing");
      inbox_.wait_for_contents(std::chrono::milliseconds(50));
    }
    if (host_ && host_->is_idle()) host_->save(batch_.take_saves(HostPages::kMostSaved));
  } catch (const std::exception& error) {
    end_all(Finish::failed, error.what());
    publish();
    throw;
  }
  return_events(events);
}

/// Requests that started wait no more.
void Loop::count_started() {
  const std::int64_t started = batch_.stats().started;
  inbox_.count_started(static_cast<std::int32_t>(started - std::exchange(started_, started)));
}

/// Lets other threads see the numbers.
void Loop::publish() {
  count_started();
  static_cast<BatchStats&>(stats_) = batch_.stats();
  const std::lock_guard lock(stats_mutex_);
  published_ = stats_;
}

void Loop::return_events(std::vector<TokenEvent>& events) {
  publish();
  std::vector<TokenEvent>& found = batch_.events();
  inbox_.count_ended(std::ranges::count_if(
      found, [](const TokenEvent& event) { return event.finish != Finish::none; }));
  std::ranges::move(found, std::back_inserter(events));
  found.clear();
}

std::chrono::nanoseconds Loop::step_age() const noexcept {
  const std::int64_t began = step_began_.load();
  if (began == 0) return {};
  return Clock::now().time_since_epoch() - Clock::duration(began);
}

/// A draft model catches up when the tokens of the step are on their way.
void Loop::launch(const StepPlan& plan) {
  {
    const HostTime time(stats_.plan_ns);
    batch_.commit(plan, active_, counts_);
    follows_.clear();
    for (const StepPart& part : plan.parts) follows_.push_back(part.follows);
    rows_.set_plan(active_, counts_,
                   static_cast<std::size_t>(std::max(plan.bucket.rows, plan.catch_up.rows)),
                   follows_);
  }
  const HostTime time(stats_.launch_ns);
  rows_.flush();
  if (host_) {
    const bool given_up = batch_.take_given_up();
    host_->load(batch_.take_loads(), given_up);
  }
  queue(plan.bucket);
  step_.queue_results(plan.bucket.outputs());
  const bool catches_up = plan.catch_up.rows > 0;
  if (catches_up) queue(plan.catch_up);
  unread_.push_back({plan.parts, plan.bucket, Clock::now(), caught_up_});
  caught_up_ = catches_up;
  ++stats_.steps;
}

/// Compiling counts for no step's time.
void Loop::queue(const Bucket& bucket) {
  if (options_.graphs) {
    graph_of(bucket).launch(stream_);
    return;
  }
  done_.insert(bucket);
  step_began_ = 0;
  record_(bucket);
  step_began_ = Clock::now().time_since_epoch().count();
}

void Loop::read_oldest(bool is_measured) {
  const std::span<const std::int32_t> results = step_.read_results();
  const HostTime time(stats_.plan_ns);
  const Unread step = std::move(unread_.front());
  unread_.pop_front();
  batch_.receive(step.parts, results, step_.row_words(), step.bucket.drafts);
  // It began when the step before it ended, or when it was launched.
  const Clock::time_point now = Clock::now(), began = std::max(last_read_, step.launched);
  if (is_measured && !step.is_delayed && options_.drafts.tokens > 0 && step.bucket.decodes())
    batch_.measure(step.bucket, std::chrono::duration<double>(now - began).count());
  last_read_ = now;
}

void Loop::end_all(Finish reason, const std::string& cause) {
  rows_.discard();
  step_.discard_results();
  unread_.clear();
  batch_.end_all(reason, cause);
}

void Loop::abandon(Finish reason, const std::string& cause, std::vector<TokenEvent>& events) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("abandon() of an engine in use: call it when no advance() is under way");
  for (auto& [number, request] : inbox_.take().submitted) batch_.submit(number, std::move(request));
  end_all(reason, cause);
  return_events(events);
}

bool Loop::uses_adapter(std::int32_t slot) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("uses_adapter() of an engine in use: adapters are loaded between steps");
  take_requests();
  return batch_.uses_adapter(slot);
}

void Loop::drop_graphs(std::uint32_t features) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("drop_graphs() of an engine in use: adapters are loaded between steps");
  stream_.synchronize();
  std::erase_if(graphs_,
                [&](const auto& each) { return (each.first.features & features) == features; });
  stats_.graphs = static_cast<std::int32_t>(graphs_.size());
  publish();
}

std::vector<std::int32_t> Loop::cached_pages(std::span<const std::int32_t> tokens,
                                             std::uint64_t salt) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("cached_pages() of an engine in use: call it when no advance() runs");
  return batch_.cached_pages(tokens, salt);
}

void Loop::restore_pages(std::span<const std::int32_t> tokens, const SequencePages::Fill& fill,
                         std::uint64_t salt) {
  const std::unique_lock busy(advancing_, std::try_to_lock);
  if (!busy) throw Error("restore_pages() of an engine in use: call it when no advance() runs");
  if (host_) host_->load({}, true);
  batch_.restore_pages(tokens, fill, salt);
  publish();
}

LoopStats Loop::stats() const {
  const std::lock_guard lock(stats_mutex_);
  LoopStats stats = published_;
  stats.waiting = inbox_.waiting();
  return stats;
}

}  // namespace kernwright::engine
