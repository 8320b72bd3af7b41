// Damage to PTX texts that leaves many of them modules: of lines and words, not of bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kernwright::fuzz {

/// `text` with one to four changes that `seed` chooses: lines copied, moved or dropped, words
/// replaced by others of the text, numbers by edge cases. The same seed gives the same text.
std::string mutate_ptx(std::string_view text, std::uint64_t seed);

}  // namespace kernwright::fuzz
