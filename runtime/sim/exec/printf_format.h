// CUDA's printf: a format text and a packed argument buffer make one piece of output.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kernwright::sim {

/// Fetches the string of a %s argument: at most `limit` characters from a device address. Nothing
/// when the memory cannot be read (the caller has noted why).
using StringReader =
    std::function<std::optional<std::string>(std::uint64_t address, std::size_t limit)>;

/// Returns the `bytes` (4 or 8) of the argument buffer at byte `offset`, or nothing if they cannot
/// be read.
using ArgumentReader =
    std::function<std::optional<std::uint64_t>(std::uint64_t offset, std::uint32_t bytes)>;

struct PrintfResult {
  std::string text;
  int arguments = 0;  ///< conversions that took an argument: what device printf returns
};

/// Rules of the CUDA programming guide: flags "#", " ", "0", "+", "-"; width and precision as
/// digits or
/// "*"; sizes hh h l ll z t j; conversions %c d i o u x X p e E f F g G a A s %%. Arguments lie one
/// after the other at their natural alignment, promoted as in C (int, 64-bit integers, double,
/// pointers). A conversion outside this list is printed as written and takes no argument. Widths
/// and precisions are limited to 1 MiB, the size of a GPU's printf buffer. Nothing when a reader
/// gave nothing.
std::optional<PrintfResult> format_printf(std::string_view format, const ArgumentReader& argument,
                                          const StringReader& string);

}  // namespace kernwright::sim
