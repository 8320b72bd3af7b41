// What a session writes of its trials and of its result, and what can be wrong with what is read.
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
/// Nothing for a row whose configuration is not in the space, or that is damaged.
std::optional<Trial> trial_of_row(const Space& space, const Row& row);

/// The result as members of a row of kind "result".
Row result_row(const Space& space, const SessionResult& result);

/// Why a row of kind "trial" tells of no trial: "is a trial without a status"; else empty.
std::string trial_misfit(const Row& row);

/// The trials among all rows of a file with which no session can go on: damaged ones, those that
/// their session's space does not have, and those whose session nothing tells of.
std::vector<LineProblem> trial_problems(const StoreContents& contents);

}  // namespace kernwright
