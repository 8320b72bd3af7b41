// The counters that tasks reserve from: bytes of memory and a share of the device's time.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

namespace kernwright::schedule {

/// An amount of every counter. Shares are counted in millionths: sums of them are exact.
struct Amount {
  std::uint64_t memory = 0;  ///< bytes
  std::uint32_t share = 0;   ///< millionths of the device's time
  bool operator==(const Amount&) const = default;
};

inline constexpr std::uint32_t kWholeShare = 1'000'000;
/// The share 0.25 in millionths, rounded.
constexpr std::uint32_t share_amount(double share) noexcept {
  return static_cast<std::uint32_t>(share * kWholeShare + 0.5);
}

class MemoryAccount;
class Reservation;

/// Capacity and what is reserved of it. All counters of a request are taken, or none. Thread-safe.
class Budget {
 public:
  explicit Budget(Amount capacity);
  /// The memory is the account's, which other budgets take from, too.
  static Budget from_account(std::shared_ptr<MemoryAccount> account, std::uint32_t share);

  Amount capacity() const noexcept;
  Amount reserved() const;  ///< by this budget
  Amount free() const;
  /// Nothing where a counter has too little.
  std::optional<Reservation> reserve(Amount amount);
  bool fits(Amount amount) const;        ///< now
  std::uint64_t held_elsewhere() const;  ///< bytes of the account that this budget has not reserved

 private:
  friend class Reservation;
  struct State;
  Budget() = default;
  std::shared_ptr<State> state_;
};

/// A reserved amount; given back exactly once, by release() or the destructor. Moves, does not
/// copy. May outlive its budget.
class Reservation {
 public:
  Reservation() = default;
  Reservation(Reservation&& other) noexcept;
  Reservation& operator=(Reservation&& other) noexcept;
  Reservation(const Reservation&) = delete;
  Reservation& operator=(const Reservation&) = delete;
  ~Reservation();

  Amount amount() const noexcept { return amount_; }
  /// Takes a part of it, at most all, as a reservation of its own; an empty part is not held.
  Reservation split(Amount part) noexcept;
  bool is_held() const noexcept { return state_ != nullptr; }
  /// Throws InvalidArgument when it was released or moved away before.
  void release();

 private:
  friend class Budget;
  Reservation(std::shared_ptr<Budget::State> state, Amount amount) noexcept;
  void give_back() noexcept;

  std::shared_ptr<Budget::State> state_;
  Amount amount_;
};

}  // namespace kernwright::schedule
