// Reserving and giving back.
#include "schedule/budget.h"

#include "base/errors.h"
#include "base/log.h"

#include <algorithm>
#include <utility>

namespace kernwright::schedule {

struct Budget::State {
  explicit State(Amount whole) : capacity(whole) {}

  bool fits(Amount amount) const noexcept {
    return amount.memory <= capacity.memory - reserved.memory &&
           amount.share <= capacity.share - reserved.share;
  }

  const Amount capacity;
  mutable std::mutex mutex;
  Amount reserved;
};

Budget::Budget(Amount capacity) : state_(std::make_shared<State>(capacity)) {}

Amount Budget::capacity() const noexcept { return state_->capacity; }

Amount Budget::reserved() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reserved;
}

Amount Budget::free() const {
  const Amount used = reserved();
  return {state_->capacity.memory - used.memory, state_->capacity.share - used.share};
}

bool Budget::fits(Amount amount) const {
  const std::lock_guard lock(state_->mutex);
  return state_->fits(amount);
}

std::optional<Reservation> Budget::reserve(Amount amount) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->fits(amount)) return std::nullopt;
  state_->reserved.memory += amount.memory;
  state_->reserved.share += amount.share;
  return Reservation(state_, amount);
}

Reservation::Reservation(std::shared_ptr<Budget::State> state, Amount amount) noexcept
    : state_(std::move(state)), amount_(amount) {}

Reservation::Reservation(Reservation&& other) noexcept
    : state_(std::move(other.state_)), amount_(std::exchange(other.amount_, {})) {}

Reservation& Reservation::operator=(Reservation&& other) noexcept {
  if (this == &other) return *this;
  give_back();
  state_ = std::move(other.state_);
  amount_ = std::exchange(other.amount_, {});
  return *this;
}

Reservation::~Reservation() { give_back(); }

Reservation Reservation::split(Amount part) noexcept {
  part.memory = std::min(part.memory, amount_.memory);
  part.share = std::min(part.share, amount_.share);
  if (part == Amount{}) return {};
  if (part == amount_) return std::move(*this);
  amount_.memory -= part.memory;
  amount_.share -= part.share;
  return Reservation(state_, part);
}

void Reservation::release() {
  if (state_ == nullptr) {
    throw InvalidArgument("a reservation is released once: this one is not held any more");
  }
  give_back();
}

void Reservation::give_back() noexcept {
  const std::shared_ptr<Budget::State> state = std::move(state_);
  const Amount amount = std::exchange(amount_, {});
  if (state == nullptr) return;
  const std::lock_guard lock(state->mutex);
  // NOTE: never below zero: a wrapped counter would refuse every task from then on.
  if (amount.memory > state->reserved.memory || amount.share > state->reserved.share) {
    log(LogLevel::error, "a scheduler's budget has less reserved than a reservation gives back");
    state->reserved = {};
    return;
  }
  state->reserved.memory -= amount.memory;
  state->reserved.share -= amount.share;
}

}  // namespace kernwright::schedule
