// Drafts: guesses of the next tokens of a text, which a step checks all at once.
#pragma once

#include "engine/schedule.h"
#include "kernels_src/steps/step_state.h"

#include <cstdint>
#include <limits>
#include <map>

namespace kernwright::engine {

struct DraftOptions {
  std::int32_t tokens = 0;          ///< of a row in a step, at most; 0: there are no drafts
  kernels::NgramLengths lengths{};  ///< of what is looked for in the text so far
  bool always = false;              ///< also where drafts do not pay
  /// Positions of the draft model; 0: there is none, and drafts come from the text so far.
  std::int32_t context = 0;
  std::int32_t vocabulary = 0;  ///< of the draft model
  /// It is a head, which in a step with drafts adds entries for what the step before computed.
  bool is_head = false;
  bool keeps_guesses = false;  ///< outputs behind a wrong draft are drafts of the next step

  bool has_model() const noexcept { return context > 0; }
};

/// Whether drafts pay: what steps with and without them take, and how many drafts are accepted.
/// The first steps of each size are measured with drafts and without. Later, so few steps are run
/// in the way that seems slower that they cost about a hundredth of the time; an answer that is new
/// is checked sooner. Not thread-safe.
class DraftPolicy {
 public:
  explicit DraftPolicy(const DraftOptions& options) : options_(options) {}

  const DraftOptions& options() const noexcept { return options_; }
  /// Whether the next step has drafts: without them it would be of size `plain`. `accepted`: drafts
  /// that a row gets accepted, as expected.
  bool wants(const Bucket& plain, double accepted);
  /// The step after wants() has no drafts yet, though they are wanted: wants() says so once more.
  void postpone(const Bucket& plain) { costs_[plain].owed = true; }
  /// A step took so long.
  void measure(const Bucket& bucket, double seconds);
  /// So many drafts of a step were accepted of a sequence with that expectation.
  void observe(float& expectation, std::int32_t accepted) noexcept;
  /// The expectation of a new sequence.
  float expectation() const noexcept { return expectation_; }

 private:
  struct Cost {
    double seconds = 0;
    std::int32_t steps = 0;
  };
  struct Costs {
    Cost plain, drafted;
    std::int32_t waited = 0;  ///< steps of one way since one of the other way
    bool pays = false;        ///< the last answer
    /// Steps of one way until it is checked against the other, for an answer that is new.
    double trusted = std::numeric_limits<double>::infinity();
    bool owed = false;  ///< a step with drafts was postponed
  };

  const DraftOptions options_;
  std::map<Bucket, Costs> costs_;  ///< by sizes of steps without drafts
  float expectation_ = 1;
};

}  // namespace kernwright::engine
