// Drafts in the plans of steps, and the work of a draft model beside these.
#pragma once

#include "engine/drafts.h"
#include "engine/row_states.h"
#include "engine/schedule.h"
#include "engine/sequence_pages.h"

namespace kernwright::engine {

/// Gives the rows of a step of decoding place for drafts: as many as the options say, or fewer. Of
/// a draft model, rows that it is behind with have none. Leaves any other step as it is, a
/// deterministic one too, and one that would have more than `max_tokens` or 256.
void add_drafts(StepPlan& plan, const DraftOptions& drafts, const ScheduleOptions& options);

/// Decides which steps have drafts. A draft model has caches of its own in the pages of sequences.
/// In a step with drafts it computes the same tokens as the model. Other steps leave
/// it behind; where drafts are wanted, it catches up behind a step, some tokens at a time. Not
/// thread-safe.
class DraftPlanner {
 public:
  /// Tokens of all sequences together for a draft model behind a step, at most.
  static constexpr std::int32_t kMostCatchUp = 1024;

  /// `rows` and `pages` outlive it.
  DraftPlanner(const DraftOptions& drafts, const ScheduleOptions& schedule, const Buckets& buckets,
               RowStates& rows, SequencePages& pages)
      : schedule_(schedule), buckets_(buckets), rows_(rows), pages_(pages), policy_(drafts) {}

  /// Adds drafts where they pay, and where pages are available for all of them.
  void plan(StepPlan& plan);
  /// Counts the tokens of a committed part in its sequence.
  void commit(const StepPart& part);
  /// A step gave so many tokens to a part with drafts.
  void observe(const StepPart& part, std::int32_t tokens);
  /// A step took so long.
  void measure(const Bucket& bucket, double seconds) { policy_.measure(bucket, seconds); }

 private:
  /// Of the rows with place for drafts.
  struct Rows {
    int ready = 0, behind = 0;
    double accepted = 0;  ///< drafts, as expected, once the draft model has caught up
  };

  Rows count_rows(const StepPlan& plan);
  void catch_up(StepPlan& plan);

  const ScheduleOptions schedule_;
  const Buckets& buckets_;
  RowStates& rows_;
  SequencePages& pages_;
  DraftPolicy policy_;
};

}  // namespace kernwright::engine
