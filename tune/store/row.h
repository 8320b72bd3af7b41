// One line of a journal or store: a JSON object that explains itself.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace kernwright {

/// {"v": 1, "kind": "session" | "trial" | "result", "session": "...", ...}. Whoever makes or reads
/// one includes <nlohmann/json.hpp>.
using Row = nlohmann::json;

/// The version of the format that this library writes and reads, the member "v" of each row.
inline constexpr int kRowVersion = 1;

}  // namespace kernwright
