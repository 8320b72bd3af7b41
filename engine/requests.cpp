// Finds requests by number and deadline, and counts how they end.
#include "engine/requests.h"

#include <algorithm>
#include <utility>

namespace kernwright::engine {

void Requests::add(std::uint64_t number, std::vector<SequencePtr> sequences) {
  Active& made = requests_[number];
  const auto& deadline = sequences.front()->source->deadline;
  made.deadline = deadline ? deadlines_.emplace(*deadline, number) : deadlines_.end();
  made.sequences = std::move(sequences);
  ++counts_.waiting;
}

std::vector<Requests::SequencePtr> Requests::sequences(std::uint64_t number) const {
  const auto found = requests_.find(number);
  return found == requests_.end() ? std::vector<SequencePtr>() : found->second.sequences;
}

Requests::SequencePtr Requests::find(std::uint64_t number, std::int32_t choice) const {
  const auto found = requests_.find(number);
  if (found == requests_.end()) return nullptr;
  const auto place = std::ranges::find_if(found->second.sequences,
                                          [&](const auto& each) { return each->choice == choice; });
  return place == found->second.sequences.end() ? nullptr : *place;
}

Requests::SequencePtr Requests::any() const {
  return is_empty() ? nullptr : requests_.begin()->second.sequences.front();
}

bool Requests::uses_adapter(std::int32_t slot) const noexcept {
  return std::ranges::any_of(requests_, [&](const auto& each) {
    return each.second.sequences.front()->source->adapter == slot;
  });
}

std::optional<std::uint64_t> Requests::expired(Clock::time_point now) const {
  if (deadlines_.empty() || deadlines_.begin()->first > now) return std::nullopt;
  return deadlines_.begin()->second;
}

void Requests::start(std::uint64_t number) {
  if (std::exchange(requests_.at(number).started, true)) return;
  ++counts_.started;
  ++counts_.running;
  --counts_.waiting;
}

Requests::SequencePtr Requests::end(const Sequence& sequence, Outcome outcome) {
  const std::uint64_t number = sequence.request;
  Active& request = requests_.at(number);
  const auto place = std::ranges::find_if(
      request.sequences, [&](const SequencePtr& each) { return each.get() == &sequence; });
  SequencePtr ended = *place;
  request.sequences.erase(place);
  request.outcome = std::max(request.outcome, outcome);
  if (!request.sequences.empty()) return ended;
  start(number);
  --counts_.running;
  ++(request.outcome == Outcome::finished  ? counts_.finished
     : request.outcome == Outcome::aborted ? counts_.aborted
                                           : counts_.failed);
  if (request.deadline != deadlines_.end()) deadlines_.erase(request.deadline);
  requests_.erase(number);
  return ended;
}

}  // namespace kernwright::engine
