// A session's rows of its trials and of its result, and possible errors in rows read back.
#pragma once

#include "tune/session/session.h"
#include "tune/store/store_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kernwright {

/// {"config": {"block": 64}} as a row has it.
Row config_row(const Space& space, std::uint64_t index);

/// The trial as a row of kind "trial", without a session.
Row trial_row(const Space& space, const Trial& trial);
/// Nothing for a damaged row, or one with a configuration outside the space.
std::optional<Trial> parse_trial(const Space& space, const Row& row);

/// The result as members of a row of kind "result".
Row result_row(const Space& space, const SessionResult& result);

/// Why a row of kind "trial" tells of no trial: "is a trial without a status"; else empty.
std::string trial_misfit(const Row& row);

/// The useless trials among all rows of a file: damaged ones, those outside their session's space,
/// and those of an unknown session.
std::vector<LineProblem> trial_problems(const StoreContents& contents);

}  // namespace kernwright
