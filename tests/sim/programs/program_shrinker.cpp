// Takes nodes away, many at once first, for as long as anything can go.
#include "sim/programs/program_shrinker.h"

#include <algorithm>
#include <iterator>

namespace kernwright::sim {
namespace {

class Shrinker {
 public:
  Shrinker(RandomProgram program, const std::function<bool(const RandomProgram&)>& shows)
      : program_(std::move(program)), shows_(shows) {}

  RandomProgram run() {
    while (shrink(program_.body())) {}
    return std::move(program_);
  }

 private:
  /// `nodes` are part of program_. Whether anything became smaller.
  bool shrink(ProgramNodes& nodes) {
    bool smaller = leave_out(nodes);
    for (std::size_t i = 0; i < nodes.size();) {
      if (!nodes[i].bodies.empty() && unwrap(nodes, i)) {
        smaller = true;
        continue;
      }
      for (ProgramNodes& body : nodes[i].bodies) smaller = shrink(body) || smaller;
      ++i;
    }
    return smaller;
  }

  bool leave_out(ProgramNodes& nodes) {
    bool smaller = false;
    for (std::size_t count = nodes.size(); count != 0; count /= 2) {
      for (std::size_t i = 0; i < nodes.size();) {
        const ProgramNodes before = nodes;
        const auto first = nodes.begin() + static_cast<std::ptrdiff_t>(i);
        nodes.erase(first, first + static_cast<std::ptrdiff_t>(std::min(count, nodes.size() - i)));
        if (shows_(program_)) {
          smaller = true;
        } else {
          nodes = before;
          i += count;
        }
      }
    }
    return smaller;
  }

  /// Puts what is in node `i` in its place.
  bool unwrap(ProgramNodes& nodes, std::size_t i) {
    const ProgramNodes before = nodes;
    ProgramNodes inner;
    for (const ProgramNodes& body : before[i].bodies)
      inner.insert(inner.end(), body.begin(), body.end());
    const auto at = nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(i));
    nodes.insert(at, inner.begin(), inner.end());
    if (shows_(program_)) return true;
    nodes = before;
    return false;
  }

  RandomProgram program_;
  const std::function<bool(const RandomProgram&)>& shows_;
};

}  // namespace

RandomProgram shrink(const RandomProgram& program,
                     const std::function<bool(const RandomProgram&)>& shows) {
  return Shrinker(program, shows).run();
}

}  // namespace kernwright::sim
