// The compression function, in C++ and with x86's SHA instructions.
#include "base/sha256.h"

#include "base/byte_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace kernwright {
namespace {

constexpr std::array<std::uint32_t, 8> kInitial = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                                   0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};

alignas(16) constexpr std::array<std::uint32_t, 64> kRound = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

std::uint32_t big_endian(const std::byte* at) noexcept {
  return std::to_integer<std::uint32_t>(at[0]) << 24 | std::to_integer<std::uint32_t>(at[1]) << 16 |
         std::to_integer<std::uint32_t>(at[2]) << 8 | std::to_integer<std::uint32_t>(at[3]);
}

void compress_portable(std::uint32_t* state, const std::byte* blocks, std::size_t count) {
  std::uint32_t w[64];
  for (; count > 0; --count, blocks += 64) {
    for (int i = 0; i < 16; ++i) w[i] = big_endian(blocks + 4 * i);
    for (int i = 16; i < 64; ++i) {
      const std::uint32_t a = w[i - 15], b = w[i - 2];
      const std::uint32_t s0 = std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3);
      const std::uint32_t s1 = std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10);
      w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    std::uint32_t v[8];
    std::copy_n(state, 8, v);
    for (int i = 0; i < 64; ++i) {
      const std::uint32_t s1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
      const std::uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
      const std::uint32_t t1 = v[7] + s1 + choice + kRound[static_cast<std::size_t>(i)] + w[i];
      const std::uint32_t s0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
      const std::uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
      std::copy_backward(v, v + 7, v + 8);
      v[4] += t1;
      v[0] = t1 + s0 + majority;
    }
    for (int i = 0; i < 8; ++i) state[i] += v[i];
  }
}

#if defined(__x86_64__)

/// Four rounds at a time. The instructions want the state as ABEF and CDGH.
__attribute__((target("sha,sse4.1,ssse3"))) void compress_x86(std::uint32_t* state,
                                                              const std::byte* blocks,
                                                              std::size_t count) {
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  const auto load = [](const void* at) __attribute__((target("sha,sse4.1,ssse3"))) {
    return _mm_loadu_si128(static_cast<const __m128i*>(at));
  };
  const __m128i badc = _mm_shuffle_epi32(load(state), 0xb1);
  const __m128i hgfe = _mm_shuffle_epi32(load(state + 4), 0x1b);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8);
  __m128i cdgh = _mm_blend_epi16(hgfe, badc, 0xf0);
  for (; count > 0; --count, blocks += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[4];
    for (int i = 0; i < 16; ++i) {
      if (i < 4) {
        w[i] = _mm_shuffle_epi8(load(blocks + 16 * i), swap);
      } else {
        // w[t] from w[t-16], w[t-15], w[t-7] and w[t-2], four words at once.
        const __m128i seventh = _mm_alignr_epi8(w[(i + 3) & 3], w[(i + 2) & 3], 4);
        const __m128i sum = _mm_add_epi32(_mm_sha256msg1_epu32(w[i & 3], w[(i + 1) & 3]), seventh);
        w[i & 3] = _mm_sha256msg2_epu32(sum, w[(i + 3) & 3]);
      }
      __m128i words = _mm_add_epi32(w[i & 3], load(kRound.data() + 4 * i));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
      words = _mm_shuffle_epi32(words, 0x0e);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, words);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, 0x1b);
  const __m128i dchg = _mm_shuffle_epi32(cdgh, 0xb1);
  auto* const out = reinterpret_cast<__m128i*>(state);
  _mm_storeu_si128(out, _mm_blend_epi16(feba, dchg, 0xf0));
  _mm_storeu_si128(out + 1, _mm_alignr_epi8(dchg, feba, 8));
}

/// From the compiler's own table where it has SHA: in a virtual machine a cpuid may take 50 us.
bool cpu_has_sha() noexcept {
  if (!__builtin_cpu_supports("ssse3") || !__builtin_cpu_supports("sse4.1")) return false;
#if defined(__clang__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & bit_SHA) != 0;
#else
  return __builtin_cpu_supports("sha");
#endif
}

#endif

}  // namespace

std::string Sha256Digest::to_hex() const {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(2 * bytes.size());
  for (const std::byte value : bytes) {
    text += kDigits[std::to_integer<std::size_t>(value >> 4)];
    text += kDigits[std::to_integer<std::size_t>(value & std::byte{15})];
  }
  return text;
}

Sha256::Sha256() noexcept : state_(kInitial), compress_(compress_portable) {
#if defined(__x86_64__)
  if (is_accelerated()) compress_ = compress_x86;
#endif
}

bool Sha256::is_accelerated() noexcept {
#if defined(__x86_64__)
  static const bool has = cpu_has_sha();
  return has;
#else
  return false;
#endif
}

Sha256 Sha256::portable() noexcept {
  Sha256 hasher;
  hasher.compress_ = compress_portable;
  return hasher;
}

Sha256& Sha256::update(std::span<const std::byte> bytes) noexcept {
  const std::size_t filled = length_ % 64;
  length_ += bytes.size();
  if (filled != 0) {
    const std::size_t taken = std::min(64 - filled, bytes.size());
    std::copy_n(bytes.begin(), taken, block_.begin() + static_cast<std::ptrdiff_t>(filled));
    if (filled + taken < 64) return *this;
    compress_(state_.data(), block_.data(), 1);
    bytes = bytes.subspan(taken);
  }
  const std::size_t whole = bytes.size() / 64;
  if (whole > 0) compress_(state_.data(), bytes.data(), whole);
  bytes = bytes.subspan(whole * 64);
  std::copy(bytes.begin(), bytes.end(), block_.begin());
  return *this;
}

Sha256& Sha256::update(std::string_view text) noexcept {
  return update(std::as_bytes(std::span(text)));
}

Sha256Digest Sha256::digest() const noexcept {
  Sha256 copy = *this;
  std::array<std::byte, 72> padding{std::byte{0x80}};
  const std::size_t filled = length_ % 64;
  const std::size_t zeros = (filled < 56 ? 56 : 120) - filled;
  for (std::size_t i = 0; i < 8; ++i) {
    padding[zeros + i] = static_cast<std::byte>((length_ * 8) >> (56 - 8 * i));
  }
  copy.update(std::span(padding).first(zeros + 8));
  Sha256Digest digest;
  for (std::size_t i = 0; i < 32; ++i) {
    digest.bytes[i] = static_cast<std::byte>(copy.state_[i / 4] >> (24 - 8 * (i % 4)));
  }
  return digest;
}

Sha256Digest read_digest(ByteReader& in) {
  Sha256Digest digest;
  const auto bytes = in.bytes(digest.bytes.size());
  std::copy(bytes.begin(), bytes.end(), digest.bytes.begin());
  return digest;
}

Sha256Digest sha256(std::span<const std::byte> bytes) noexcept {
  return Sha256().update(bytes).digest();
}

Sha256Digest sha256(std::string_view text) noexcept { return Sha256().update(text).digest(); }

}  // namespace kernwright
