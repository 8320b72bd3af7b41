// The rules of the window and of shares.
#include "schedule/pacer.h"

#include <algorithm>
#include <atomic>

namespace kernwright::schedule {
namespace {

/// The next piece is queued so long before the one in front ends: a host needs as long for a
/// launch.
constexpr Time kLead = std::chrono::microseconds(20);
constexpr int kLongPiece = 4;   ///< times the window: urgent work must not meet two longer ones
constexpr double kRecent = 32;  ///< urgent tasks that tell whether more follow soon
constexpr double kFollows = 1 / kRecent;  ///< part of those from which best effort is held
constexpr std::size_t kMostTimes = 4096;  ///< kernels whose times are remembered
constexpr Time kAway = std::chrono::milliseconds(5);  ///< without a launch: has left the device

void tell(const PacedLaunch& launch) noexcept {
  if (launch.told != nullptr) std::atomic_ref(*launch.told).store(1, std::memory_order_relaxed);
}

bool is_told(const PacedLaunch& launch) noexcept {
  return launch.told != nullptr && std::atomic_ref(*launch.told).load() != 0;
}

}  // namespace

Time Pacer::estimate(const WorkKey& work) const noexcept {
  const auto known = known_.find(work);
  return known != known_.end() ? known->second.times.mean() : options_.window;
}

Time Pacer::window(Time now) const noexcept {
  return is_quiet(now) ? options_.idle_window : options_.window;
}

void Pacer::note_urgent(Time now) noexcept {
  if (last_urgent_end_ >= last_urgent_) {  // else another one is under way
    const bool follows = now - last_urgent_end_ <= options_.hold;
    follows_ += ((follows ? 1 : 0) - follows_) / kRecent;
  }
  last_urgent_ = now;
}

void Pacer::note_urgent_end(Time now) noexcept { last_urgent_ = last_urgent_end_ = now; }

bool Pacer::is_held(Time now) const noexcept {
  return follows_ >= kFollows && now - last_urgent_end_ < options_.hold &&
         now - last_best_effort_ < options_.longest_hold;
}

std::optional<Pacer::Cut> Pacer::find_cut(const WorkKey& work, Time now) {
  const auto found = known_.find(work);
  if (found == known_.end()) return std::nullopt;
  auto& [times, cut] = found->second;
  const Time latency = window(now), whole = times.least();
  // Nothing at or below the latency can be cut, and a launch that a cutter leaves whole stays
  // whole.
  if (std::min(times.mean(), whole) <= latency) return std::nullopt;
  const auto piece = known_.find(cut.piece());
  const WorkTimes* const pieces = piece != known_.end() ? &piece->second.times : nullptr;
  if (cut.stays_whole(times, pieces, now)) return std::nullopt;
  return Cut{whole, latency, is_quiet(now) ? 0 : options_.spare};
}

void Pacer::note_cut(const WorkKey& work, const WorkKey& piece, double pieces) {
  const auto known = known_.find(work);
  if (known != known_.end()) known->second.cut.note(piece, pieces);
}

/// What best-effort work on the device still takes, by what equal work took alone; the longest time
/// where that was never measured.
Time Pacer::time_left(Time now) const noexcept {
  Time left{0}, begin = last_done_;
  for (const Entry& entry : entries_) {
    if (!entry.launch.is_best_effort) continue;
    const auto known = known_.find(entry.launch.work);
    if (known == known_.end()) return Time::max();
    begin = std::max(begin, entry.entered) + known->second.times.least();
    left = begin - now;
  }
  return left;
}

/// The best-effort work on the device stays within the window, except that one launch may always
/// go, and a short one shortly before the end of all others.
bool Pacer::window_has_room(const PacedLaunch& launch, Time now) const {
  Time sum = estimate(launch.work);
  bool alone = true;
  for (const Entry& entry : entries_) {
    if (!entry.launch.is_best_effort) continue;
    alone = false;
    sum += entry.estimate;
  }
  if (alone || sum <= window(now)) return true;
  const auto known = known_.find(launch.work);
  return known != known_.end() && known->second.times.mean() <= kLongPiece * window(now) &&
         time_left(now) <= kLead;
}

/// Of the tenants with a share that want the device, the one furthest behind goes.
bool Pacer::is_next(const PacedLaunch& launch, Time now) const {
  const auto shared = static_cast<std::size_t>(std::count_if(
      entries_.begin(), entries_.end(), [](const Entry& entry) { return entry.launch.has_share; }));
  if (shared >= options_.most_shared) return false;
  const Time grace = shared == 0 ? options_.idle_grace : options_.grace;
  return std::none_of(contenders_.begin(), contenders_.end(), [&](const auto& each) {
    const auto& [tenant, state] = each;
    if (tenant == launch.tenant || tenant->progress() >= launch.tenant->progress()) {
      return false;
    }
    if (tenant->limit() < 1 && tenant->meter().second_fraction(now) >= tenant->limit())
      return false;
    return state.waiting != 0 || now - state.last <= grace;
  });
}

std::optional<Pacer::Number> Pacer::try_enter(const PacedLaunch& launch, Time now) {
  const Tenant& tenant = *launch.tenant;
  if (tenant.limit() < 1 && tenant.meter().second_fraction(now) >= tenant.limit()) return {};
  if (launch.is_best_effort && (is_held(now) || !window_has_room(launch, now))) return {};
  if (launch.has_share && !is_next(launch, now)) return {};
  const Time expected = estimate(launch.work);
  const Time charged = known_.contains(launch.work) ? expected : Time(0);
  entries_.push_back({next_, launch, now, expected, charged, {}, {}});
  if (launch.is_best_effort) last_best_effort_ = now;
  launch.tenant->precharge(charged);
  if (launch.has_share) contenders_[launch.tenant].last = now;
  return next_++;
}

void Pacer::add_waiting(const PacedLaunch& launch, Time now) {
  if (!launch.has_share) return;
  const auto is_away = [&](const Contender& each) {
    return each.waiting == 0 && now - each.last > kAway;
  };
  Contender& self = contenders_[launch.tenant];
  const bool comes_back = is_away(self);
  ++self.waiting;
  if (!comes_back) return;
  // Whoever comes back begins where the others are: time left to them is not owed.
  std::optional<double> least;
  for (const auto& [tenant, state] : contenders_) {
    if (tenant == launch.tenant || is_away(state)) continue;
    least = std::min(least.value_or(tenant->progress()), tenant->progress());
  }
  if (least) launch.tenant->catch_up(*least);
  std::erase_if(contenders_, [&](const auto& each) {
    return is_away(each.second) && each.first.use_count() == 1;
  });
}

void Pacer::remove_waiting(const PacedLaunch& launch) noexcept {
  const auto place = contenders_.find(launch.tenant);
  if (place != contenders_.end() && place->second.waiting != 0) --place->second.waiting;
}

std::deque<Pacer::Entry>::iterator Pacer::find(Number number) noexcept {
  return std::find_if(entries_.begin(), entries_.end(),
                      [&](const Entry& entry) { return entry.number == number; });
}

void Pacer::stop_yielding() noexcept {
  for (const Entry& entry : entries_) {
    if (entry.launch.is_best_effort) tell(entry.launch);
  }
}

void Pacer::stop(Number number) noexcept {
  const auto entry = find(number);
  if (entry != entries_.end()) tell(entry->launch);
}

std::vector<CUdeviceptr> Pacer::take_orders() {
  std::vector<CUdeviceptr> words;
  for (Entry& entry : entries_) {
    if (entry.is_ordered || !is_told(entry.launch)) continue;
    words.push_back(entry.launch.order);
    entry.is_ordered = true;
  }
  return words;
}

void Pacer::withdraw(Number number) noexcept {
  const auto entry = find(number);
  if (entry != entries_.end()) entry->launch.told = nullptr;
}

bool Pacer::try_leave(Number number, Time now) noexcept {
  const auto entry = find(number);
  if (entry == entries_.end()) return true;
  if (is_told(entry->launch) || time_left(now) > kLead) return false;
  entry->launch.told = nullptr;
  return true;
}

bool Pacer::may_stop(const Task& task) const noexcept {
  return std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.launch.task.get() == &task && entry.launch.told != nullptr;
  });
}

void Pacer::issued(Number number, Event begin, Event end) {
  const auto entry = find(number);
  if (entry == entries_.end()) return;
  entry->begin = std::move(begin);
  entry->end = std::move(end);
}

void Pacer::forget(Number number, Time now) {
  const auto entry = find(number);
  if (entry == entries_.end()) return;
  entry->launch.tenant->settle(now, Time(0), entry->charged);
  entries_.erase(entry);
}

std::vector<Pacer::Pending> Pacer::pending() const {
  std::vector<Pending> list;
  for (const Entry& entry : entries_) {
    if (entry.end) list.push_back({entry.number, *entry.begin, *entry.end});
  }
  return list;
}

TaskPointer Pacer::done(Number number, Time busy, Time now) {
  const auto entry = find(number);
  if (entry == entries_.end()) return nullptr;
  const TaskPointer task = entry->launch.task;
  last_done_ = now;
  if (entry->launch.is_rest || is_told(entry->launch)) {  // a part tells no time of the whole
    entry->launch.tenant->settle(now, busy, entry->charged);
    entries_.erase(entry);
    return task;
  }
  if (known_.size() >= kMostTimes) known_.clear();
  WorkTimes& times = known_[entry->launch.work].times;
  entry->launch.tenant->settle(now, busy, entry->charged);  // nothing throws from here on
  times.add(busy);
  entries_.erase(entry);
  return task;
}

}  // namespace kernwright::schedule
