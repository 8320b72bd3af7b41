// Texts of untrusted origin, made fit for terminals and prompts.
#pragma once

#include <string>
#include <string_view>

namespace kernwright {

struct Verdict;

/// The text, cut behind some 4000 bytes, with every character that a terminal obeys or that hides
/// others (control characters, marks of writing direction, bytes that are no UTF-8) spelled out:
/// "\\x1b", "\\u202e". Tabs stay, line breaks where `keep_lines` says so.
std::string terminal_text(std::string_view text, bool keep_lines = false);

/// The same for all texts of a verdict. Only those that may have several lines keep them.
void make_terminal_text(Verdict& verdict);

}  // namespace kernwright
