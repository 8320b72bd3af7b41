// Collects the counts of launches by source line.
#include "sim/observe/line_profile_recorder.h"

#include <algorithm>

namespace kernwright::sim {

bool LineProfileRecorder::wants(CUfunction function) const noexcept {
  return functions_.empty() ||
         std::find(functions_.begin(), functions_.end(), function) != functions_.end();
}

void LineProfileRecorder::add(const Program& program, std::uint32_t entry,
                              const std::vector<LineCounts>& counts) {
  const std::string& kernel = program.functions[entry].name;
  ++launches_[kernel];
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] == LineCounts{}) continue;
    const ptx::SourceLine& source = program.places[i].source;
    const auto& files = program.module->files;
    const auto file = static_cast<std::size_t>(source.file);
    lines_[{kernel, file < files.size() ? files[file] : std::string(), source.line}] += counts[i];
  }
}

LineProfile LineProfileRecorder::profile() const {
  LineProfile profile;
  profile.launches = launches_;
  for (const auto& [place, counts] : lines_) {
    const auto& [kernel, file, line] = place;
    profile.lines.push_back({kernel, file, line, 1, counts});
  }
  return profile;
}

}  // namespace kernwright::sim
