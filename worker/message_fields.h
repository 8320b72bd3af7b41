// Parts of requests and exceptions as fields of a message.
#pragma once

#include "base/byte_reader.h"
#include "base/fault_report.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kernwright {

/// A text of at most 128 MiB.
std::string read_text(ByteReader& in);

// Each read throws Error for bytes that its write did not make.
void write(ByteWriter& out, const FaultReport& report);
FaultReport read_fault_report(ByteReader& in);

void write(ByteWriter& out, const std::vector<std::string>& texts);
std::vector<std::string> read_texts(ByteReader& in);

}  // namespace kernwright
