// Entries of the disk cache, as they are and with a checksum made to fit, so that the fields are
// reached.
#include "jit/cache/cache_entry.h"
#include "base/byte_reader.h"
#include "base/errors.h"
#include "base/sha256.h"
#include "fuzz/targets.h"

#include <stdexcept>
#include <vector>

namespace kernwright::fuzz {
namespace {

constexpr std::size_t kEntryBegin = 12;   ///< magic and version
constexpr std::size_t kEntryHeader = 52;  ///< and size and checksum of the body

std::vector<std::byte> sealed(std::span<const std::byte> bytes) {
  const auto body = bytes.subspan(kEntryHeader);
  ByteWriter out;
  out.bytes(bytes.first(kEntryBegin));
  out.u64(body.size());
  const Sha256Digest checksum = Sha256().update(out.data()).update(body).digest();
  out.bytes(checksum.bytes);
  out.bytes(body);
  return out.take();
}

/// What was read is written in a form that is read and written the same way.
void read(std::span<const std::byte> bytes) {
  std::vector<std::byte> once;
  try {
    once = encode_entry(decode_entry(bytes));
  } catch (const Error&) {
    return;
  }
  if (encode_entry(decode_entry(once)) != once) {
    throw std::logic_error("a cache entry changed on its way");
  }
}

}  // namespace

void cache_entry(std::string_view bytes) {
  const auto all = std::as_bytes(std::span(bytes));
  read(all);
  if (all.size() >= kEntryHeader) read(sealed(all));
}

}  // namespace kernwright::fuzz
