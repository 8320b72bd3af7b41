// The file of KERNWRIGHT_RECORD: compile requests as lines of JSON.
#pragma once

#include "jit/cache/code_cache.h"
#include "jit/cache/pack.h"

#include <filesystem>
#include <string>
#include <vector>

namespace kernwright {

/// Appends the request to the file named by KERNWRIGHT_RECORD, once per distinct request and
/// process; several processes may write to one file. Without the variable nothing happens. A
/// failure to write is a warning. Thread-safe.
void record_request(const CodeRequest& request);

/// One line without its end, as record_request() writes it.
std::string record_line(const CodeRequest& request);

}  // namespace kernwright
