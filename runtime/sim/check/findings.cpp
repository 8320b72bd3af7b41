// Merges and words findings.
#include "sim/check/findings.h"

#include "base/format.h"

#include <algorithm>
#include <utility>

namespace kernwright::sim {
namespace {

bool same_place(const Finding& a, const Finding& b) {
  const FaultReport &x = a.fault, &y = b.fault;
  if (x.kind != y.kind || x.ptx_line != y.ptx_line || x.line != y.line || x.kernel != y.kernel ||
      x.file != y.file || a.space != b.space || a.what != b.what ||
      a.other.has_value() != b.other.has_value()) {
    return false;
  }
  return !a.other || (a.other->ptx_line == b.other->ptx_line && a.other->what == b.other->what);
}

std::string thread_text(const std::array<unsigned, 3>& block,
                        const std::array<unsigned, 3>& thread) {
  return format("block ({}, {}, {}), thread ({}, {}, {})", block[0], block[1], block[2], thread[0],
                thread[1], thread[2]);
}

std::string place_text(const std::string& file, int line, int first_line, int ptx_line,
                       const std::string& opcode) {
  std::string text = "a place that is not known";
  if (line > 0) {
    text = file.empty() ? format("line {}", line) : format("{}:{}", file, line + first_line - 1);
  }
  if (ptx_line > 0) text += format(" (PTX line {}: {})", ptx_line, opcode);
  return text;
}

}  // namespace

std::string Finding::to_string() const {
  std::string text = fault.to_string();
  if (!value.empty()) text += format("\n  this {}: {}", what, value);
  if (other) {
    text += format(
        "\n  {} at {}, {}", other->what,
        place_text(other->file, other->line, other->file == fault.file ? fault.first_line : 1,
                   other->ptx_line, other->opcode),
        other->thread_known ? thread_text(other->block, other->thread)
                            : std::string("one of several threads"));
    if (!other->value.empty()) text += format(": {}", other->value);
  }
  if (count > 1) text += format("\n  {} times", count);
  if (!hint.empty()) text += "\n  " + hint;
  return text;
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
    known->count += finding.count;
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
