// Parts of requests and exceptions as fields of a message.
#pragma once

#include "base/byte_reader.h"
#include "base/fault.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

/// A text of at most 128 MiB.
std::string read_text(ByteReader& in);

/// A byte of at most `last`; else throws Error with the expected range.
std::uint8_t read_up_to(ByteReader& in, std::uint8_t last, const char* what);

/// The same for an enumeration that counts from 0 to `last`.
template <typename Enum>
Enum read_enum(ByteReader& in, Enum last, const char* what) {
  return static_cast<Enum>(read_up_to(in, static_cast<std::uint8_t>(last), what));
}

// Each read throws Error for bytes that its write did not make.
void write(ByteWriter& out, const Fault& report);
Fault read_fault(ByteReader& in);

void write(ByteWriter& out, const std::vector<std::string>& texts);
std::vector<std::string> read_texts(ByteReader& in);

}  // namespace kernwright
