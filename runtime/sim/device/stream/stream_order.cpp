// Clocks at issue, ranges at the end of the work, and the comparison of both.
#include "sim/device/stream/stream_order.h"

#include "base/format.h"
#include "sim/device/sim_driver.h"

#include <algorithm>

namespace kernwright::sim {
namespace {

// Beyond these many pieces of work per allocation the oldest are forgotten.
constexpr std::size_t kMostEntries = 128;

struct Overlap {
  Touched work, other;
};

std::pair<const Touched*, const Touched*> find_kind(const std::vector<Touched>& touched,
                                                    AccessKind kind) {
  const auto found = std::ranges::equal_range(touched, kind, {}, &Touched::kind);
  return {std::to_address(found.begin()), std::to_address(found.end())};
}

std::optional<Overlap> overlap(const std::vector<Touched>& work, AccessKind kind,
                               const std::vector<Touched>& other, AccessKind other_kind) {
  auto [a, a_end] = find_kind(work, kind);
  auto [b, b_end] = find_kind(other, other_kind);
  while (a != a_end && b != b_end) {
    if (a->end <= b->begin) {
      ++a;
    } else if (b->end <= a->begin) {
      ++b;
    } else {
      return Overlap{*a, *b};
    }
  }
  return std::nullopt;
}

/// Orders are meant for kernels that look at their words meanwhile.
bool is_met(bool is_order, AccessKind kind, AccessKind other) {
  return is_order && kind == AccessKind::write && other != AccessKind::write;
}

std::optional<Overlap> conflict(const std::vector<Touched>& work, bool is_order,
                                const std::vector<Touched>& other, bool other_is_order) {
  using enum AccessKind;
  for (const auto& [kind, other_kind] : {std::pair{write, write},
                                         {write, read},
                                         {read, write},
                                         {write, atomic},
                                         {atomic, write},
                                         {atomic, read},
                                         {read, atomic}}) {
    if (is_met(is_order, kind, other_kind) || is_met(other_is_order, other_kind, kind)) continue;
    if (auto found = overlap(work, kind, other, other_kind)) return found;
  }
  return std::nullopt;
}

const char* verb(const OrderedWork& work, AccessKind kind) {
  if (work.name == "cuMemFreeAsync") return "frees";
  if (work.name == "cuMemAllocAsync") return "allocates";
  return kind == AccessKind::read ? "reads" : kind == AccessKind::write ? "writes" : "updates";
}

std::string line(const OrderedWork& work, const Touched& range) {
  return format("{} on {} {} {} bytes from {:#x} on", work.name, work.stream,
                verb(work, range.kind), range.end - range.begin, range.begin);
}

Fault report(const OrderedWork& work, const OrderedWork& other, const Overlap& overlap) {
  Fault result;
  result.kind = FaultKind::race;
  result.address = std::max(overlap.work.begin, overlap.other.begin);
  result.access_size = std::min(overlap.work.end, overlap.other.end) - result.address;
  result.message = format(
      "{} on {} and {} on {} touch the same {} bytes at {:#x}, and nothing "
      "orders them",
      other.name, other.stream, work.name, work.stream, result.access_size, result.address);
  if (work.name.starts_with("kernel ")) result.kernel = work.name.substr(7);
  result.allocation = sim_driver().describe(result.address, result.access_size, nullptr);
  result.details = line(other, overlap.other) + "\n" + line(work, overlap.work) +
                   "\nrecord an event after the first and let the other's stream wait for it";
  return result;
}

/// First byte of the allocation around `address`, or `address` itself when there is none any more.
std::uint64_t get_allocation(std::uint64_t address) {
  Memory* const memory = sim_driver().get_memory(address);
  return memory == nullptr ? address : memory->search(address).begin;
}

}  // namespace

void StreamOrder::enable(bool on) {
  const std::lock_guard lock(mutex_);
  entries_.clear();
  on_ = on;
}

VectorClock StreamOrder::issue(Context& context, Stream& stream, Actor* actor,
                               std::uint64_t* step) {
  const std::lock_guard lock(mutex_);
  if (stream.actor == 0) {
    const auto known = std::ranges::find_if(
        retired_, [&](const Retired& old) { return host_.at(old.actor) >= old.steps; });
    stream.actor = known == retired_.end() ? next_actor_++ : known->actor;
    if (known != retired_.end()) retired_.erase(known);
  }
  stream.clock.join(host_);
  if (stream.legacy) stream.clock.join(context.blocking_clock);
  if (stream.blocking() && context.legacy != nullptr) stream.clock.join(context.legacy->clock);
  *actor = stream.actor;
  *step = stream.clock.advance(stream.actor);
  if (stream.blocking()) context.blocking_clock.join(stream.clock);
  context.whole_clock.join(stream.clock);
  return stream.clock;
}

void StreamOrder::stream_learns(Stream& stream, const VectorClock& clock) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  stream.clock.join(clock);
}

void StreamOrder::host_learns(const VectorClock& clock) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  host_.join(clock);
}

void StreamOrder::host_learns(Stream& stream) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  host_.join(stream.clock);
}

void StreamOrder::host_learns(Context& context, bool blocking_only) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  host_.join(context.legacy->clock);
  host_.join(blocking_only ? context.blocking_clock : context.whole_clock);
}

VectorClock StreamOrder::stream_clock(Stream& stream) {
  const std::lock_guard lock(mutex_);
  return stream.clock;
}

void StreamOrder::retire(Stream& stream) {
  const std::lock_guard lock(mutex_);
  if (stream.actor != 0) retired_.push_back({stream.actor, stream.clock.at(stream.actor)});
}

void StreamOrder::drop_known(std::vector<Entry>& entries) const {
  std::erase_if(
      entries, [&](const Entry& entry) { return entry.work->step <= host_.at(entry.work->actor); });
}

/// Drops allocations without a user.
void StreamOrder::sweep() {
  for (auto entry = entries_.begin(); entry != entries_.end();) {
    drop_known(entry->second);
    entry = entry->second.empty() ? entries_.erase(entry) : std::next(entry);
  }
}

std::optional<Fault> StreamOrder::note(const std::shared_ptr<const OrderedWork>& work,
                                       const std::vector<Touched>& touched, bool settled) {
  std::map<std::uint64_t, std::vector<Touched>> parts;
  for (const Touched& range : touched) parts[get_allocation(range.begin)].push_back(range);
  const std::lock_guard lock(mutex_);
  constexpr std::size_t kSweepEvery = 1024;
  if (settled && ++notes_ % kSweepEvery == 0) sweep();
  std::optional<Fault> finding;
  for (auto& [allocation, ranges] : parts) {
    std::vector<Entry>& entries = entries_[allocation];
    if (settled) drop_known(entries);
    for (const Entry& entry : entries) {
      if (finding || entry.work->step <= work->clock.at(entry.work->actor)) continue;
      if (const auto bytes =
              conflict(ranges, work->is_order, entry.touched, entry.work->is_order)) {
        finding = report(*work, *entry.work, *bytes);
      }
    }
    if (entries.size() >= kMostEntries) entries.erase(entries.begin());
    entries.push_back({work, std::move(ranges)});
  }
  return finding;
}

void StreamOrder::forget(std::uint64_t address) {
  if (!on()) return;
  const std::lock_guard lock(mutex_);
  entries_.erase(address);
}

}  // namespace kernwright::sim
