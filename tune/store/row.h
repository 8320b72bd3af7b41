// One line of a journal or store: a self-describing JSON object.
#pragma once

#include <nlohmann/json.hpp>

namespace kernwright {

/// {"v": 1, "kind": "session" | "trial" | "result", "session": "...", ...}.
///
/// Session and result rows have the members of StoreKey. The launch is in the members "grid",
/// "block" (a number, an expression over parameters and problem values, or a list of up to three of
/// them), "shared_bytes", "default" (a configuration) and "restrictions" (expressions) of the
/// result row, else of its session's row.
using Row = nlohmann::json;

/// The version of the row format for reading and writing, the member "v" of each row.
inline constexpr int kRowVersion = 1;

}  // namespace kernwright
