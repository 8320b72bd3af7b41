// Entries of the disk cache: what is read must be written again as the same bytes.
#include "jit/cache_entry.h"
#include "base/errors.h"
#include "fuzz/targets.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

namespace kernwright::fuzz {

void cache_entry(std::string_view bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  std::vector<std::byte> again;
  try {
    again = encode_entry(decode_entry(all));
  } catch (const Error&) {
    return;
  }
  if (!std::equal(again.begin(), again.end(), all.begin(), all.end())) {
    throw std::logic_error("a cache entry changed on its way");
  }
}

}  // namespace kernwright::fuzz
