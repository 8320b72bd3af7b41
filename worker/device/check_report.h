// Findings of checked launches on a simulated device, and their transfer between processes.
#pragma once

#include "base/byte_reader.h"
#include "sim/checks.h"
#include "sim/line_profile.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

struct CheckOptions {
  /// As in KERNWRIGHT_CHECKS: memory, init, race, sync, all.
  std::vector<std::string> checks{"all"};
  /// The order of blocks and warps; nothing: the usual one (sim::ScheduleScope).
  std::optional<std::uint64_t> schedule_seed{};
  /// The usual order is the same each time, too: launches run on one thread.
  bool replays = false;
  std::size_t limit = sim::Findings::kDefaultLimit;  ///< of different findings
};

struct CheckReport {
  std::vector<sim::Finding> findings;  ///< errors that stop a launch are among them
  std::uint64_t total = 0;             ///< how often, also what found no room in the list
  sim::LineProfile profile;            ///< counts by line: profile.total() for all
};

void write(ByteWriter& out, const CheckOptions& options);
CheckOptions read_check_options(ByteReader& in);
void write(ByteWriter& out, const CheckReport& report);
CheckReport read_check_report(ByteReader& in);

}  // namespace kernwright
