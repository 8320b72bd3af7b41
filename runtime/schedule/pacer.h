// Launches one by one: a window of best-effort work, and shares of the device's time.
#pragma once

#include "core/event.h"
#include "core/launch/launch_pieces.h"
#include "schedule/accounts/tenant.h"
#include "schedule/task.h"
#include "schedule/work_times.h"

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace kernwright::schedule {

struct PaceOptions {
  /// Multiprocessors that pieces and launches that yield leave to others while more urgent tasks
  /// come: those begin there at once.
  int spare = 16;
  /// So long best effort stays off the device behind the end of an urgent task, where such tasks
  /// follow one another that soon: else most of them would meet a launch of it that has just begun.
  Time hold = std::chrono::microseconds(100);
  /// Best effort that entered no launch for so long is not held.
  Time longest_hold = std::chrono::milliseconds(10);
  /// Best-effort work on the device at once, by measured times, while more urgent tasks come.
  Time window = std::chrono::microseconds(50);
  /// The same when none came for a while.
  Time idle_window = std::chrono::milliseconds(1);
  /// Without an urgent task for so long, the device counts as left to best effort.
  Time quiet = std::chrono::milliseconds(50);
  /// Launches of tenants with a share on the device at once: one runs, one waits behind it.
  std::size_t most_shared = 2;
  /// So long a tenant that is behind its share keeps its place while its host works; less when the
  /// device has nothing to do.
  Time grace = std::chrono::microseconds(200);
  Time idle_grace = std::chrono::microseconds(30);
};

/// One launch: what it does, and for whom.
struct PacedLaunch {
  TaskPointer task;
  std::shared_ptr<Tenant> tenant;
  bool is_best_effort = false;
  bool has_share = false;
  WorkKey work;
  bool is_rest = false;  ///< of a launch that stopped: its time is not that of the whole
  /// Of a launch that yields: set to 1 when it is told to stop; 0 at first. It lives until the
  /// launch is done or withdrawn.
  std::uint32_t* told = nullptr;
  CUdeviceptr order = 0;  ///< the word that the launch reads, where an order is stored
};

/// Decides when a launch may go, and measures it by events. Tenants are charged for a launch when
/// it goes, by its estimate, and for the difference when it is done. Not thread-safe.
class Pacer {
 public:
  explicit Pacer(PaceOptions options = {}) : options_(options) {}

  using Number = std::uint64_t;
  /// The launch may go now: it is counted from here on. Nothing when it has to wait.
  std::optional<Number> try_enter(const PacedLaunch& launch, Time now);
  /// It waits, and is asked again; or not any more.
  void add_waiting(const PacedLaunch& launch, Time now);
  void remove_waiting(const PacedLaunch& launch) noexcept;
  /// The driver took the launch between these events.
  void issued(Number number, Event begin, Event end);
  /// It was not launched, or could not be measured.
  void forget(Number number, Time now);
  /// A task of a class in front of best effort begins, or has ended.
  void note_urgent(Time now) noexcept;
  void note_urgent_end(Time now) noexcept;

  /// More urgent work comes: all best-effort launches that yield are told to stop. The orders are
  /// those of take_orders().
  void stop_yielding() noexcept;
  /// Words of launches that were told to stop, each once, until they are done or withdrawn.
  std::vector<CUdeviceptr> take_orders();
  /// The same for one launch.
  void stop(Number number) noexcept;
  /// No order reaches the launch from now on.
  void withdraw(Number number) noexcept;
  /// Whether a launch that yields is done, or was not told to stop and is done so soon that this
  /// withdraws it.
  bool try_leave(Number number, Time now) noexcept;
  /// Whether a launch of the task is on the device and would stop for more urgent work.
  bool may_stop(const Task& task) const noexcept;

  /// Launches with events, oldest first.
  struct Pending {
    Number number;
    Event begin, end;
  };
  std::vector<Pending> pending() const;
  /// A launch is done; it kept the device busy for so long. Returns its task.
  TaskPointer done(Number number, Time busy, Time now);

  bool is_empty() const noexcept { return entries_.empty(); }
  std::size_t size() const noexcept { return entries_.size(); }
  Time estimate(const WorkKey& work) const noexcept;

  /// The measured time of best-effort work to be cut, and the longest wanted time of a
  /// piece. Nothing where the work fits the window, was never measured, or stays whole.
  struct Cut {
    Time whole{0}, latency{0};
    int spare = 0;  ///< multiprocessors that are to be left
  };
  std::optional<Cut> find_cut(const WorkKey& work, Time now);
  /// The work is as long as so many pieces, most of them `piece`; 0: it stays whole from now on.
  void note_cut(const WorkKey& work, const WorkKey& piece, double pieces);

 private:
  struct Entry {
    Number number;
    PacedLaunch launch;
    Time entered{0};
    Time estimate{0};
    Time charged{0};  ///< to its tenant, when it went
    std::optional<Event> begin, end;
    bool is_ordered = false;  ///< take_orders() had its word
  };
  struct Contender {
    std::size_t waiting = 0;
    Time last{0};  ///< its latest launch
  };

  struct Known {
    WorkTimes times;
    CutChoice cut;
  };

  bool is_quiet(Time now) const noexcept { return now - last_urgent_ > options_.quiet; }
  bool is_held(Time now) const noexcept;
  Time window(Time now) const noexcept;
  bool window_has_room(const PacedLaunch& launch, Time now) const;
  Time time_left(Time now) const noexcept;
  bool is_next(const PacedLaunch& launch, Time now) const;
  std::deque<Entry>::iterator find(Number number) noexcept;

  const PaceOptions options_;
  std::deque<Entry> entries_;
  std::map<WorkKey, Known> known_;
  std::map<std::shared_ptr<Tenant>, Contender> contenders_;
  Number next_ = 1;
  Time last_done_{0};
  Time last_urgent_{-1'000'000'000'000};
  Time last_urgent_end_ = last_urgent_, last_best_effort_ = last_urgent_;
  double follows_ = 0;  ///< part of urgent tasks that began within the hold, of recent ones
};

}  // namespace kernwright::schedule
