// The two searches without a strategy: in order, and at random.
#include "tune/search/sampling.h"

namespace kernwright {

void BruteForce::propose(std::size_t wanted) {
  for (; wanted > 0 && next_ < set().size(); ++next_)
    if (take(next_)) --wanted;
}

void RandomSearch::propose(std::size_t) {}  // the base class draws at random

}  // namespace kernwright
