// Asking the copies in flight, and waiting in short pauses.
#include "memory/transfer_pacer.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>
#include <utility>

namespace kernwright {
namespace {

/// What fails tells it to whoever waits for the copy; here it is over.
bool is_over(const Transfer& transfer) {
  try {
    return transfer.done();
  } catch (const std::exception&) {
    return true;
  }
}

bool has_passed(const std::optional<Event>& event) {
  try {
    return !event || event->done();
  } catch (const std::exception&) {
    return true;
  }
}

}  // namespace

void TransferPacer::enter(TransferClass kind, Transfer transfer, std::optional<Event> after) {
  const std::lock_guard lock(mutex_);
  std::erase_if(entries_, [](const Entry& entry) { return is_over(entry.transfer); });
  entries_.push_back({kind, std::move(transfer), std::move(after)});
}

bool TransferPacer::is_turn(TransferClass kind) {
  const std::lock_guard lock(mutex_);
  return std::none_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return entry.kind < kind && !is_over(entry.transfer) && has_passed(entry.after);
  });
}

void TransferPacer::clear() noexcept {
  std::vector<Entry> gone;  // dropped after the lock
  const std::lock_guard lock(mutex_);
  gone.swap(entries_);
}

void TransferPacer::wait_turn(TransferClass kind) {
  if (kind == TransferClass::urgent) return;
  std::chrono::microseconds pause{10};
  while (!is_turn(kind)) {
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(200));
  }
}

}  // namespace kernwright
