// XXH3-128 behind our own types.
#include "base/hash.h"

#include "base/format.h"

#define XXH_INLINE_ALL  // the header alone: nothing of the library is linked
#include <xxhash.h>

#include <array>

namespace kernwright {

namespace {

Hash128 from(XXH128_hash_t hash) noexcept { return {hash.high64, hash.low64}; }

}  // namespace

std::string Hash128::to_hex() const { return format("{:016x}{:016x}", high, low); }

Hash128 hash_bytes(std::span<const std::byte> bytes) noexcept {
  return from(XXH3_128bits(bytes.data(), bytes.size()));
}

Hash128 hash_text(std::string_view text) noexcept {
  return from(XXH3_128bits(text.data(), text.size()));
}

struct Hasher::State {
  XXH3_state_t xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) { XXH3_128bits_reset(&state_->xxh); }

Hasher::~Hasher() = default;
Hasher::Hasher(Hasher&&) noexcept = default;
Hasher& Hasher::operator=(Hasher&&) noexcept = default;

Hasher& Hasher::update(std::span<const std::byte> bytes) noexcept {
  if (!bytes.empty()) XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size());
  return *this;
}

Hasher& Hasher::update(std::string_view text) noexcept {
  return update(std::as_bytes(std::span(text)));
}

Hasher& Hasher::field(std::string_view text) noexcept { return field(text.size()).update(text); }

Hasher& Hasher::field(std::uint64_t value) noexcept {
  std::array<std::byte, 8> bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(value >> (8 * i));
  return update(bytes);
}

Hash128 Hasher::digest() const noexcept { return from(XXH3_128bits_digest(&state_->xxh)); }

}  // namespace kernwright
