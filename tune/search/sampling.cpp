// The two searches that only walk through the space.
#include "tune/search/sampling.h"

namespace kernwright {

void BruteForce::propose(std::size_t wanted) {
  for (; wanted > 0 && next_ < set().size(); ++next_)
    if (take(next_)) --wanted;
}

void RandomSearch::propose(std::size_t) {}  // what nobody proposes is drawn at random

}  // namespace kernwright
