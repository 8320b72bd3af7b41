// The sequences of an engine, waiting and running, and the plan of the next step.
#pragma once

#include "engine/draft_planner.h"
#include "engine/drafts.h"
#include "engine/inbox.h"
#include "engine/leader.h"
#include "engine/requests.h"
#include "engine/row_states.h"
#include "engine/schedule.h"
#include "engine/sequence.h"
#include "engine/sequence_pages.h"
#include "engine/waiting.h"

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kernwright::engine {

struct BatchOptions {
  std::int32_t max_rows = 0;
  std::int32_t capacity = 0;  ///< tokens of a row
  PageOptions pages{};
  ScheduleOptions schedule{};   ///< max_tokens is more than max_rows
  std::int32_t vocabulary = 0;  ///< tokens of prompts are below it
  /// A sequence is admitted with place for so many tokens more than it has.
  std::int32_t reserve_tokens = 32;
  DraftOptions drafts{};
  /// Above 0 texts of more tokens have other rotary positions, from their first token on: a text
  /// that gets there is preempted, and all of its tokens are computed again.
  std::int32_t short_length = 0;
};

struct BatchStats : RequestCounts {
  std::int64_t tokens = 0;             ///< generated
  std::int64_t prompt_tokens = 0;      ///< of admitted sequences
  std::int64_t shared_tokens = 0;      ///< of prompts, found in the prefix cache
  std::int64_t preemptions = 0;        ///< losses of a row and its pages
  std::int64_t recomputed_tokens = 0;  ///< of preempted sequences in a row again
  std::int64_t drafts = 0;             ///< parts of steps with drafts
  std::int64_t drafted_tokens = 0;     ///< checked as drafts
  std::int64_t accepted_tokens = 0;    ///< of these, part of the text
  std::int32_t rows = 0;               ///< running sequences
  std::int32_t free_pages = 0, used_pages = 0, cached_pages = 0;  ///< all pages together
  std::int32_t host_pages = 0;                                    ///< with a copy on the host
  std::int64_t saved_pages = 0, loaded_pages = 0;                 ///< copied to the host, and back
};

/// Knows no device: changes of rows go to a RowStates, and the tokens of steps come in by
/// receive(). Not thread-safe.
///
/// A sequence is admitted when pages of its known tokens and some more are available, beside those
/// that the running ones may soon take. Where pages run out, the one of the lowest priority, and of
/// these the newest, is preempted: its tokens are computed again later. A deterministic engine
/// admits a sequence when the pages of its longest text are available, and preempts none: a token
/// that is computed again in a step of another size may differ in its last bits. A sequence whose
/// beginning a running one is about to compute waits for these pages, and lets others pass.
class Batch {
 public:
  using Clock = std::chrono::steady_clock;

  /// `rows` outlives the batch. Throws InvalidArgument for limits without sense.
  Batch(const BatchOptions& options, RowStates& rows);

  const BatchOptions& options() const noexcept { return options_; }
  const Buckets& buckets() const noexcept { return buckets_; }
  BatchStats stats() const;
  bool has_sequences() const noexcept { return !requests_.is_empty(); }
  /// What happened since these were taken.
  std::vector<TokenEvent>& events() noexcept { return events_; }

  /// Throws InvalidArgument for a request too large ever to run, with the size of one to fit. For
  /// any thread.
  void require_possible(const Request& request) const;
  void submit(std::uint64_t number, Request&& request);
  void cancel(const Inbox::Cancel& cancel);
  /// A mask for a sequence that ended, or that waits for none, changes nothing.
  void set_mask(Inbox::NextMask&& next);
  /// Whether a running sequence waits for its mask.
  bool waits_for_masks() const noexcept;
  /// Whether a sequence, running or waiting, has the adapter of this slot.
  bool uses_adapter(std::int32_t slot) const noexcept;
  /// Ends requests whose deadline is over.
  void expire(Clock::time_point now);
  /// Admits sequences, and plans the next step. All its pages are available.
  StepPlan plan();
  /// Counts a planned step as on its way. Its parts are in `active` and `counts`.
  void commit(const StepPlan& plan, std::vector<std::int32_t>& active,
              std::vector<std::int32_t>& counts);
  /// Takes the tokens of a committed step, in the order of steps: for each part an output, and one
  /// for each of the bucket's `drafts`. An output is `words`, of which the first is a token, or
  /// kernels::kNoToken and so on.
  void receive(std::span<const StepPart> parts, std::span<const std::int32_t> results,
               std::size_t words, std::int32_t drafts = 0);
  /// A step took so long.
  void measure(const Bucket& bucket, double seconds) { drafts_.measure(bucket, seconds); }
  /// See SequencePages.
  std::vector<std::int32_t> cached_pages(std::span<const std::int32_t> tokens,
                                         std::uint64_t salt = 0) {
    return pages_.cached(tokens, salt);
  }
  void restore_pages(std::span<const std::int32_t> tokens, const SequencePages::Fill& fill,
                     std::uint64_t salt = 0) {
    strip_waiting();  // what waiting sequences have is available, too
    pages_.restore(tokens, fill, salt);
  }
  /// See PrefixCache. What is loaded is copied in front of the next step, what is saved behind the
  /// last one.
  void use_host(std::int32_t slots) { pages_.prefixes().use_host(slots); }
  std::vector<kernels::PageMove> take_loads();
  bool take_given_up() noexcept { return pages_.prefixes().take_given_up(); }
  std::vector<kernels::PageMove> take_saves(std::size_t most);
  /// Ends everything. Steps on their way give nothing any more.
  void end_all(Finish reason, const std::string& cause);

 private:
  using SequencePtr = std::shared_ptr<Sequence>;

  void admit();
  bool admit_one(const SequencePtr& sequence);
  bool search(const SequencePtr& sequence);
  bool awaits_prefix(const SequencePtr& sequence);
  void release_waiters(Sequence& sequence, std::int32_t tokens);
  std::int32_t demand(const Sequence& sequence) const noexcept;
  struct Claim {
    std::size_t rows = 0;
    std::int32_t pages = 0;
  };
  Claim claim_before(const Sequence& sequence) const noexcept;
  StepPlan preempting_plan();
  SequencePtr victim() const;
  bool preempt_below(std::int32_t priority);
  void preempt(const SequencePtr& sequence);
  void preempt_long();
  bool strip_waiting();
  void send_mask(Sequence& sequence, std::int32_t drafts);
  void release_followers(Sequence& sequence);
  void correct(const StepPart& part, std::int32_t tokens, std::int32_t drafted);
  void receive_token(Sequence& sequence, std::span<const std::int32_t> result);
  void finish(Sequence& sequence, Finish reason, std::int32_t token = -1,
              std::vector<std::int32_t> details = {}, const std::string& cause = {});

  const BatchOptions options_;
  const Buckets buckets_;
  RowStates& rows_;
  SequencePages pages_;
  DraftPlanner drafts_;
  FairShares shares_;
  WaitingQueue queue_;
  /// The first of the queue, with the pages that the prefix cache has of it, while it waits.
  SequencePtr searched_;
  std::vector<SequencePtr> running_;  ///< the earliest admitted first
  std::vector<std::int32_t> free_rows_;
  Requests requests_;
  std::vector<TokenEvent> events_;
  BatchStats stats_;
  std::uint64_t last_admitted_ = 0;
};

}  // namespace kernwright::engine
