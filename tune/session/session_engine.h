// The inside of a session: trials without an outcome, their lanes, and trials with an outcome.
#pragma once

#include "tune/session/ended_trials.h"
#include "tune/session/final_comparison.h"
#include "tune/session/pending_trial.h"
#include "tune/session/questions.h"
#include "tune/session/session.h"
#include "tune/session/session_clock.h"
#include "tune/session/trial_runner.h"
#include "tune/session/work_lanes.h"

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

class Session::Engine {
 public:
  Engine(const Space& space, TrialBackend& backend, SessionOptions options);
  ~Engine();

  const Trial* next();
  const SessionResult& finish();
  void stop() noexcept { is_stopped_.store(true); }
  std::optional<Trial> ask();
  const Trial& tell(Trial trial);

  const EndedTrials::List& trials() const { return ended_.all(); }
  const Trial* best() const { return ended_.best(); }
  SessionResult result() const;

 private:
  using Stage = PendingTrial::Stage;

  double now() const { return clock_.now(); }
  Spending spending() const;
  bool may_ask() const;
  std::optional<std::uint64_t> ask_next();
  PendingTrial& begin(std::uint64_t index);
  void plan(PendingTrial& pending);
  bool tell_next();
  void take_over_best();
  void fill();
  bool is_stuck(std::uint64_t number) const;
  void fill_gaps();
  void dispatch();
  void start_compile(PendingTrial& pending);
  void start_run(PendingTrial& pending);
  void enforce_deadlines();
  bool is_running(const std::string& same_key) const;
  void end(SessionEnd reason);
  void give_up();

  void handle(std::uint64_t event);
  void compiled(PendingTrial& pending);
  void ran(PendingTrial& pending);
  void fail(PendingTrial& pending, TrialStatus status, std::string message);
  void fail_by_error(PendingTrial& pending, bool compiling);
  const Trial& settle(PendingTrial& pending);
  void rate(Trial& trial, std::optional<double> cost);
  void take(const RaceResult& compared);
  void report(bool is_gpu, bool begins, const PendingTrial& pending);

  const Space& space_;
  TrialBackend& backend_;
  SessionOptions options_;
  SessionClock clock_;
  StopFlag run_stop_ = std::make_shared<std::atomic<bool>>(false);
  Questions questions_;
  std::optional<Scout> scout_;  ///< from the first trial with a delayed question on
  CompileEstimate estimate_;
  TrialRunner runner_;
  FinalComparison final_;
  std::atomic<bool> is_stopped_{false};
  std::optional<SessionEnd> end_;

  EndedTrials ended_;
  std::uint64_t asked_ = 0;
  std::map<std::uint64_t, std::uint64_t> taken_;                    ///< number by index
  std::map<std::uint64_t, std::unique_ptr<PendingTrial>> pending_;  ///< by number
  std::vector<std::uint64_t> arrived_;  ///< events that are still to be handled, the next one last
  std::map<std::string, std::uint64_t> leaders_;  ///< number of the first trial with that code
  std::optional<SessionResult> result_;

  WorkEvents events_;
  // Last: their threads use the members above.
  WorkLanes compile_lanes_;
  WorkLanes device_lanes_;
};

}  // namespace kernwright
