// Copies that are orders: words that kernels under way look at.
#pragma once

#include <utility>

namespace kernwright {

/// While one lives, each copy that this thread issues is an order: it stores a word that a kernel
/// under way looks at from time to time. A simulated device lets orders overtake launches, and
/// finds no race between an order and a read or an atomic operation at the word.
class OrderScope {
 public:
  OrderScope() noexcept : before_(std::exchange(current(), true)) {}
  ~OrderScope() { current() = before_; }
  OrderScope(const OrderScope&) = delete;
  OrderScope& operator=(const OrderScope&) = delete;

  /// Whether this thread is in such a scope.
  static bool& current() noexcept {
    thread_local bool inside = false;
    return inside;
  }

 private:
  bool before_;
};

}  // namespace kernwright
