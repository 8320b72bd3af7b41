// Collects the counts of launches by source line.
#pragma once

#include "sim/line_profile.h"
#include "sim/observe/observed_program.h"

#include <string>
#include <tuple>

namespace kernwright::sim {

/// Used by the launching thread, one at a time.
class LineProfileRecorder {
 public:
  explicit LineProfileRecorder(std::vector<CUfunction> functions)
      : functions_(std::move(functions)) {}

  bool wants(CUfunction function) const noexcept;
  /// `counts` are those of a launch of the entry, by op.
  void add(const Program& program, std::uint32_t entry, const std::vector<LineCounts>& counts);
  LineProfile profile() const;

 private:
  using Place = std::tuple<std::string, std::string, int>;  ///< kernel, file, line
  std::vector<CUfunction> functions_;
  std::map<Place, LineCounts> lines_;
  std::map<std::string, std::uint64_t> launches_;
};

}  // namespace kernwright::sim
