// Reserving and giving back.
#include "schedule/accounts/budget.h"

#include "base/errors.h"
#include "base/log.h"
#include "schedule/accounts/memory_account.h"

#include <algorithm>
#include <utility>

namespace kernwright::schedule {

struct Budget::State {
  State(Amount given, std::shared_ptr<MemoryAccount> common)
      : whole(given), account(std::move(common)) {}

  std::uint64_t free_memory() const noexcept {
    return account != nullptr ? account->free() : whole.memory - reserved.memory;
  }
  bool fits(Amount amount) const noexcept {
    return amount.share <= whole.share - reserved.share &&
           (amount.memory == 0 || amount.memory <= free_memory());
  }

  const Amount whole;
  const std::shared_ptr<MemoryAccount> account;  ///< of the memory; null: it is `whole.memory`
  mutable std::mutex mutex;
  Amount reserved;
};

Budget::Budget(Amount capacity) : state_(std::make_shared<State>(capacity, nullptr)) {}

Budget Budget::from_account(std::shared_ptr<MemoryAccount> account, std::uint32_t share) {
  Budget made;
  made.state_ = std::make_shared<State>(Amount{0, share}, std::move(account));
  return made;
}

Amount Budget::capacity() const noexcept {
  if (state_->account == nullptr) return state_->whole;
  return {state_->account->capacity(), state_->whole.share};
}

Amount Budget::reserved() const {
  const std::lock_guard lock(state_->mutex);
  return state_->reserved;
}

Amount Budget::free() const {
  const std::lock_guard lock(state_->mutex);
  return {state_->free_memory(), state_->whole.share - state_->reserved.share};
}

bool Budget::fits(Amount amount) const {
  if (amount == Amount{}) return true;  // most tasks ask for nothing
  const std::lock_guard lock(state_->mutex);
  return state_->fits(amount);
}

std::uint64_t Budget::held_elsewhere() const {
  if (state_->account == nullptr) return 0;
  const std::lock_guard lock(state_->mutex);
  const std::uint64_t held = state_->account->held();
  return held - std::min(held, state_->reserved.memory);
}

std::optional<Reservation> Budget::reserve(Amount amount) {
  const std::lock_guard lock(state_->mutex);
  if (!state_->fits(amount)) return std::nullopt;
  MemoryAccount* const account = state_->account.get();
  // Another budget may have taken the bytes meanwhile.
  if (account != nullptr && amount.memory != 0 && !account->reserve(amount.memory)) {
    return std::nullopt;
  }
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
  if (state->account != nullptr) state->account->give_back(amount.memory);
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
