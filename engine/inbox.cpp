// Keeps requests until the loop takes them.
#include "engine/inbox.h"

namespace kernwright::engine {

std::uint64_t Inbox::submit(Request request) {
  const std::lock_guard lock(mutex_);
  if (limit_ > 0 && waiting_.load() >= limit_) return 0;
  ++waiting_;
  unfinished_ += request.choices;
  contents_.submitted.emplace_back(++last_request_, std::move(request));
  arrived_.notify_all();
  return last_request_;
}

void Inbox::cancel(Cancel cancel) {
  const std::lock_guard lock(mutex_);
  contents_.cancelled.push_back(std::move(cancel));
  arrived_.notify_all();
}

void Inbox::set_mask(NextMask mask) {
  const std::lock_guard lock(mutex_);
  contents_.masks.push_back(std::move(mask));
  arrived_.notify_all();
}

Inbox::Contents Inbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(contents_, {});
}

void Inbox::wait_for_work() {
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return has_work() || woken_; });
  woken_ = false;
}

void Inbox::wait_for_contents(std::chrono::nanoseconds limit) {
  std::unique_lock lock(mutex_);
  arrived_.wait_for(lock, limit, [&] {
    return woken_ || !contents_.submitted.empty() || !contents_.cancelled.empty() ||
           !contents_.masks.empty();
  });
}

void Inbox::wake() {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  arrived_.notify_all();
}

}  // namespace kernwright::engine
