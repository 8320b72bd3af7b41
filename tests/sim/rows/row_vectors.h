// What a GPU computed for every opcode of the ISA table: a file of hashes, and how to make one.
#pragma once

#include "driver/driver_api.h"
#include "sim/rows/row_programs.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright::sim {

/// One line for each opcode: its name, a tab, and the hash that a GPU gave (16 digits), or
/// `refused` where the GPU's assembler knows no such opcode, or, where the manual gives a bound
/// instead of bits, `~` and the results of the first kApproximations threads, 16 digits each. Where
/// the simulated device follows the manual and the GPU's assembler does not (its replacements of
/// some video instructions with .sat, .min or .max, mad.hi.sat), `!`, the GPU's hash and ours.
using RowVectors = std::map<std::string, std::string>;

inline constexpr std::string_view kRefused = "refused";
inline constexpr std::string_view kUnrecorded = "unrecorded";  ///< nobody ran it on a GPU yet
inline constexpr char kDiffers = '!';
inline constexpr unsigned kApproximations = 256;

RowVectors read_row_vectors(const std::string& path);
std::string to_text(const RowVectors& vectors);

/// The forms of each stem ("add", "cvt", ...) that are not `without`.
std::map<std::string, std::vector<RowForm>> forms_by_stem(const RowVectors& without);

/// Runs the program of `forms` from `image` (its PTX, or what an assembler made of it) in the
/// current context and returns the line of each form. Throws std::runtime_error with the driver's
/// error.
std::vector<std::string> run_rows(const DriverApi& api, const void* image,
                                  std::span<const RowForm> forms);

}  // namespace kernwright::sim
