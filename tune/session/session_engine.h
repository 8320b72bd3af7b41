// The inside of a session: trials in flight, lanes that compile and run them, and their outcomes.
#pragma once

#include "tune/measure/race.h"
#include "tune/session/session.h"
#include "tune/session/work_lanes.h"

#include <atomic>
#include <chrono>
#include <deque>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace kernwright {

class Session::Engine {
  static constexpr std::size_t kMostFinalists = 12;
  // The final comparison may take this part of the session's time, and this many seconds at least.
  static constexpr double kFinalPart = 0.15, kLeastFinal = 2;
  static constexpr int kLeastRounds = 12;
  static constexpr double kLookPart = 0.25;  // of it, for a second look at those that seem slow

 public:
  Engine(const Space& space, TrialBackend& backend, SessionOptions options);
  ~Engine();

  const Trial* next();
  const SessionResult& finish();
  void stop() noexcept { is_stopped_.store(true); }
  std::optional<Trial> ask();
  const Trial& tell(Trial trial);

  const std::vector<std::unique_ptr<Trial>>& trials() const { return trials_; }
  const Trial* best() const { return best_; }
  SessionResult result() const;

 private:
  enum class Stage : std::uint8_t {
    queued,
    compiling,
    compiled,
    follows,  ///< waits for the trial with the same code
    running,
    ended,
    outside,  ///< somebody else measures it
  };

  struct Flight {
    Trial trial;
    Stage stage = Stage::queued;
    Choices choices{};
    TrialWorkRef work{};
    CompiledTrial compiled{};
    StopFlag stop{};
    std::exception_ptr error{};
    std::optional<double> expected_s{};  ///< of its compile
    double dispatched_s = 0;             ///< to the lane that it is on, or was last
    bool is_late = false;                ///< its compile was stopped at its deadline
    std::optional<double> cost{};
    std::vector<std::uint64_t> followers{};  ///< flights with the same code
  };

  struct Finalist {
    const Trial* trial;
    std::vector<double> times;
    double rank;  ///< the median, or a later sample
  };

  double now() const;
  Spending spending() const;
  bool may_ask() const;
  void ask_for_proposals();
  std::optional<std::uint64_t> next_index();
  std::optional<std::uint64_t> ask_next();
  Flight& take_off(std::uint64_t index);
  void plan(Flight& flight);
  bool tell_next();
  void fill();
  bool is_stuck(std::uint64_t number) const;
  std::optional<std::uint64_t> scout_index();
  void fill_gaps();
  void dispatch();
  void start_compile(Flight& flight);
  void start_run(Flight& flight);
  void compile(Flight& flight);
  void prepare(unsigned lane, const WaitLimits& limits);
  void run(Flight& flight, unsigned lane, std::optional<double> best_sample);
  void enforce_deadlines();
  bool is_running(const std::string& same_key) const;
  void end(SessionEnd reason);
  void give_up();

  void handle(std::uint64_t event);
  void compiled(Flight& flight);
  void ran(Flight& flight);
  void join_leader(Flight& flight, Flight& leader);
  void adopt(Trial& trial, const Trial& leader);
  void fail(Flight& flight, TrialStatus status, std::string message);
  void fail_by_error(Flight& flight, bool compiling);
  const Trial& land(Flight& flight);
  void keep_work(const Trial& trial, TrialWorkRef work);
  void enter_race(const Trial& trial);
  std::vector<Finalist> ranked() const;
  static void sort_by_rank(std::vector<Finalist>& found);
  void look_again(std::vector<Finalist>& found, double seconds);
  std::vector<Finalist> finalists(double seconds);
  void rate(Trial& trial, std::optional<double> cost);
  void report(bool is_gpu, bool begins, const Flight& flight);
  TrialWorkRef finalist_work(std::uint64_t index, const WaitLimits& limits);
  std::optional<double> sample_finalist(std::uint64_t index);
  void compare_finalists();

  const Space& space_;
  TrialBackend& backend_;
  SessionOptions options_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::unique_ptr<Strategy> strategy_;
  std::unique_ptr<Strategy> scout_;  ///< proposes while the other one waits; null before
  std::size_t scouted_ = 0;          ///< of trials_, those that the scout knows of
  CompileEstimate estimate_;
  std::atomic<bool> is_stopped_{false};
  std::optional<SessionEnd> end_;
  bool is_exhausted_ = false;
  std::uint64_t propose_after_ = 0;  ///< told trials before the next call of `propose`

  std::vector<std::unique_ptr<Trial>> trials_;
  std::size_t delivered_ = 0;
  const Trial* best_ = nullptr;
  double gpu_s_ = 0;
  std::uint64_t asked_ = 0;
  std::map<std::uint64_t, std::uint64_t> taken_;              ///< number by index
  std::map<std::uint64_t, std::unique_ptr<Flight>> flights_;  ///< by number
  std::vector<std::uint64_t> arrived_;   ///< events that are still to be handled, the next one last
  std::set<std::uint64_t> wanted_;       ///< indices that the search asked for
  std::deque<std::uint64_t> questions_;  ///< numbers of those that it has no answer to, in order
  std::uint64_t told_ = 0;               ///< answers that the strategy had
  std::map<std::string, std::uint64_t> leaders_;  ///< number of the first trial with that code
  std::map<std::uint64_t, const Trial*> landed_;  ///< by number
  std::map<std::uint64_t, TrialWorkRef> works_;   ///< of the fastest so far, by index
  Race race_;
  StopFlag run_stop_ = std::make_shared<std::atomic<bool>>(false);
  std::optional<SessionResult> result_;

  WorkEvents events_;
  // Last: their threads use what stands above.
  WorkLanes compile_lanes_;
  WorkLanes device_lanes_;
};

}  // namespace kernwright
