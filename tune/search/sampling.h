// Searches without learning: all configurations in order, or in random order.
#pragma once

#include "tune/search/strategy.h"

namespace kernwright {

/// Every configuration in the order of the space.
class BruteForce : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  void propose(std::size_t wanted) override;

 private:
  std::uint64_t next_ = 0;
};

/// Every configuration in random order.
class RandomSearch : public Strategy {
 public:
  using Strategy::Strategy;

 protected:
  void propose(std::size_t wanted) override;
};

}  // namespace kernwright
