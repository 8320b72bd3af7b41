// Merges and words findings.
#include "sim/check/report/findings.h"

#include "base/format.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace kernwright::sim {
namespace {

/// A line of the source may be many instructions: those of an unrolled loop, for example.
template <typename Place>
bool same_line(const Place& a, const Place& b) {
  if (a.line != b.line || a.file != b.file) return false;
  return a.line > 0 || a.ptx_line == b.ptx_line;
}

bool same_place(const Finding& a, const Finding& b) {
  const Fault &x = a.fault, &y = b.fault;
  if (x.kind != y.kind || !same_line(x, y) || x.kernel != y.kernel || a.code != b.code ||
      a.space != b.space || a.what != b.what || a.other.has_value() != b.other.has_value()) {
    return false;
  }
  if (x.line <= 0 && x.ptx_line == 0 && x.message != y.message) return false;  // of no place
  return !a.other || (same_line(*a.other, *b.other) && a.other->what == b.other->what);
}

std::string thread_text(const std::array<unsigned, 3>& block,
                        const std::array<unsigned, 3>& thread) {
  return format("block ({}, {}, {}), thread ({}, {}, {})", block[0], block[1], block[2], thread[0],
                thread[1], thread[2]);
}

std::string place_text(const OtherAccess& other) {
  std::string text = other.line > 0 ? source_place(other.file, other.line, other.first_line)
                                    : std::string("a place that is not known");
  if (other.ptx_line > 0) text += format(" (PTX line {}: {})", other.ptx_line, other.opcode);
  return text;
}

}  // namespace

std::string Finding::to_string() const {
  std::string text = fault.to_string();
  if (!value.empty()) text += format("\n  this {}: {}", what, value);
  if (other) {
    text += format("\n  {} at {}, {}", other->what, place_text(*other),
                   other->thread_known ? thread_text(other->block, other->thread)
                                       : std::string("one of several threads"));
    if (!other->value.empty()) text += format(": {}", other->value);
  }
  if (count > 1) text += format("\n  {} times", count);
  if (!hint.empty()) text += "\n  " + hint;
  return text;
}

std::uint64_t code_id(std::string_view ptx) noexcept {
  const std::uint64_t id = std::hash<std::string_view>()(ptx);
  return id == 0 ? 1 : id;
}

void Findings::set_limit(std::size_t limit) {
  const std::lock_guard lock(mutex_);
  limit_ = limit;
}

void Findings::add(Finding&& finding) {
  const std::lock_guard lock(mutex_);
  total_ += finding.count;
  const auto known = std::find_if(list_.begin(), list_.end(),
                                  [&](const Finding& one) { return same_place(one, finding); });
  if (known != list_.end()) {
    finding.count += known->count;
    if (finding.breadth <= known->breadth) {
      known->count = finding.count;
    } else {
      *known = std::move(finding);
    }
  } else if (list_.size() < limit_) {
    list_.push_back(std::move(finding));
  }
}

std::vector<Finding> Findings::take() {
  const std::lock_guard lock(mutex_);
  total_ = 0;
  return std::exchange(list_, {});
}

std::vector<Finding> Findings::list() const {
  const std::lock_guard lock(mutex_);
  return list_;
}

std::uint64_t Findings::total() const {
  const std::lock_guard lock(mutex_);
  return total_;
}

}  // namespace kernwright::sim
