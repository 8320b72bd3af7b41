// Accounts of users, and queues by priority.
#include "engine/waiting.h"

#include <algorithm>
#include <limits>
#include <tuple>

namespace kernwright::engine {

namespace {

constexpr std::size_t kMostAccounts = 1024;  ///< above it, those of absent users are forgotten

}  // namespace

std::shared_ptr<Account> FairShares::enter(const std::string& user) {
  const auto found = accounts_.find(user);
  if (found != accounts_.end() && found->second->active > 0) {
    ++found->second->active;
    return found->second;
  }
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const auto& [name, each] : accounts_) {
    if (each->active > 0) least = std::min(least, each->served);
  }
  if (accounts_.size() >= kMostAccounts) forget_absent(least);
  std::shared_ptr<Account>& account = accounts_[user];
  if (account == nullptr) account = std::make_shared<Account>();
  if (least != std::numeric_limits<std::int64_t>::max())
    account->served = std::max(account->served, least);
  account->active = 1;
  return account;
}

/// An absent user with no more than the least of the others would begin there anyway.
void FairShares::forget_absent(std::int64_t least) {
  std::erase_if(accounts_, [&](const auto& each) {
    return each.second->active == 0 && each.second->served <= least;
  });
}

void WaitingQueue::add(const SequencePtr& sequence) {
  Level& level = levels_[sequence->source->priority];
  if (sequence->preempted) {
    const auto place = std::ranges::find_if(level.preempted, [&](const SequencePtr& each) {
      return each->admitted > sequence->admitted;
    });
    level.preempted.insert(place, sequence);
  } else {
    auto& others = level.others[sequence->account];
    const auto earlier = std::find_if(others.rbegin(), others.rend(), [&](const SequencePtr& each) {
      return each->request <= sequence->request;
    });
    others.insert(earlier.base(), sequence);  // one that waited elsewhere has its place again
  }
  ++size_;
}

void WaitingQueue::remove(const Sequence& sequence) {
  const auto level = levels_.find(sequence.source->priority);
  if (level == levels_.end()) return;
  const auto same = [&](const SequencePtr& each) { return each.get() == &sequence; };
  auto& others = level->second.others;
  const auto user = others.find(sequence.account);
  std::size_t removed = std::erase_if(level->second.preempted, same);
  if (user != others.end()) {
    removed += std::erase_if(user->second, same);
    if (user->second.empty()) others.erase(user);
  }
  size_ -= removed;
  if (level->second.empty()) levels_.erase(level);
}

WaitingQueue::SequencePtr WaitingQueue::first() const {
  if (levels_.empty()) return nullptr;
  const Level& level = levels_.begin()->second;
  if (!level.preempted.empty()) return level.preempted.front();
  const auto turn = [](const auto& each) {
    return std::tuple(each.first->served, each.second.front()->request);
  };
  return std::ranges::min_element(level.others, {}, turn)->second.front();
}

bool WaitingQueue::is_before(const Sequence& sequence, const Sequence& other) noexcept {
  if (sequence.source->priority != other.source->priority)
    return sequence.source->priority > other.source->priority;
  if (other.preempted) return false;
  if (sequence.account == other.account) return sequence.request <= other.request;
  return std::tuple(sequence.account->served, sequence.request) <
         std::tuple(other.account->served, other.request);
}

void WaitingQueue::visit(const std::function<void(Sequence&)>& call) const {
  for (const auto& [priority, level] : levels_) {
    for (const SequencePtr& each : level.preempted) call(*each);
    for (const auto& [account, sequences] : level.others) {
      for (const SequencePtr& each : sequences) call(*each);
    }
  }
}

}  // namespace kernwright::engine
