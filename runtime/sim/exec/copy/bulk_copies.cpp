// Asynchronous copies of a block: bulk groups, and deferred copies.
#include "sim/exec/copy/bulk_copies.h"

#include <utility>

namespace kernwright::sim {

void BulkCopies::reset(std::uint64_t seed, std::uint32_t threads) {
  seed_ = state_ = seed;
  waiting_.clear();
  groups_.clear();
  if (seed != 0) groups_.resize(threads);
}

bool BulkCopies::run(std::vector<Move>& moves) {
  bool ok = true;
  for (Move& move : moves) ok = ok && move();
  moves.clear();
  return ok;
}

bool BulkCopies::issue(Move move) {
  if (!deferred()) return move();
  waiting_.push_back(std::move(move));
  return true;
}

bool BulkCopies::issue_in_group(std::uint32_t thread, Move move) {
  if (!deferred()) return move();
  groups_[thread].open.push_back(std::move(move));
  return true;
}

void BulkCopies::commit(std::uint32_t thread) {
  if (!deferred()) return;
  groups_[thread].committed.push_back(std::exchange(groups_[thread].open, {}));
}

bool BulkCopies::wait(std::uint32_t thread, std::uint32_t left) {
  if (!deferred()) return true;
  auto& committed = groups_[thread].committed;
  bool ok = true;
  while (ok && committed.size() > left) {
    ok = run(committed.front());
    committed.pop_front();
  }
  return ok;
}

bool BulkCopies::run_one(bool& ok) {
  if (waiting_.empty()) return false;
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  const std::size_t chosen = static_cast<std::size_t>(state_ >> 33) % waiting_.size();
  Move move = std::move(waiting_[chosen]);
  waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(chosen));
  ok = move();
  return true;
}

bool BulkCopies::finish() {
  bool ok = true;
  while (ok && run_one(ok)) {}
  for (Groups& groups : groups_) {
    for (std::vector<Move>& group : groups.committed) ok = ok && run(group);
    groups.committed.clear();
    ok = ok && run(groups.open);
  }
  return ok;
}

}  // namespace kernwright::sim
