// Stored object code, as it is and with a checksum made to fit, so that the fields are reached.
#include "jit/object_code.h"
#include "base/byte_reader.h"
#include "base/errors.h"
#include "base/hash.h"
#include "fuzz/targets.h"

#include <stdexcept>
#include <string>

namespace kernwright::fuzz {
namespace {

constexpr std::size_t kBegin = 12;   ///< magic and version
constexpr std::size_t kHeader = 36;  ///< and checksum and size of the body

std::string sealed(std::string_view bytes) {
  const auto body = std::as_bytes(std::span(bytes.substr(kHeader)));
  const Hash128 checksum = hash_bytes(body);
  ByteWriter out;
  out.bytes(std::as_bytes(std::span(bytes.substr(0, kBegin))));
  out.u64(checksum.high);
  out.u64(checksum.low);
  out.u64(body.size());
  out.bytes(body);
  return {reinterpret_cast<const char*>(out.data().data()), out.data().size()};
}

/// What was read is written in a form that is read and written the same way.
void read(std::string_view bytes) {
  std::string once;
  try {
    once = ObjectCode::deserialize(bytes).serialize();
  } catch (const Error&) {
    return;
  }
  if (ObjectCode::deserialize(once).serialize() != once) {
    throw std::logic_error("object code changed on its way");
  }
}

}  // namespace

void object_code(std::string_view bytes) {
  read(bytes);
  if (bytes.size() >= kHeader) read(sealed(bytes));
}

}  // namespace kernwright::fuzz
