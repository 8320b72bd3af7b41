// Checked little-endian fields.
#include "base/byte_reader.h"

#include "base/errors.h"
#include "base/format.h"

#include <bit>
#include <cstring>
#include <limits>
#include <utility>

namespace kernwright {

ByteReader::ByteReader(std::span<const std::byte> bytes, std::string what)
    : bytes_(bytes), what_(std::move(what)) {}

std::span<const std::byte> ByteReader::bytes(std::uint64_t count) {
  if (count > remaining()) {
    throw Error(format("{}: truncated at offset {}: {} bytes wanted, {} left", what_, offset_,
                       count, remaining()));
  }
  const auto view = bytes_.subspan(offset_, static_cast<std::size_t>(count));
  offset_ += view.size();
  return view;
}

template <typename Unsigned>
Unsigned ByteReader::little_endian() {
  const auto field = bytes(sizeof(Unsigned));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < field.size(); ++i) {
    value |= std::to_integer<std::uint64_t>(field[i]) << (8 * i);
  }
  return static_cast<Unsigned>(value);
}

std::uint8_t ByteReader::u8() { return little_endian<std::uint8_t>(); }
std::uint16_t ByteReader::u16() { return little_endian<std::uint16_t>(); }
std::uint32_t ByteReader::u32() { return little_endian<std::uint32_t>(); }
std::uint64_t ByteReader::u64() { return little_endian<std::uint64_t>(); }
std::int32_t ByteReader::i32() { return std::bit_cast<std::int32_t>(u32()); }
std::int64_t ByteReader::i64() { return std::bit_cast<std::int64_t>(u64()); }
double ByteReader::f64() { return std::bit_cast<double>(u64()); }

std::string ByteReader::text(std::uint32_t limit) {
  const std::size_t start = offset_;
  const std::uint32_t size = u32();
  if (size > limit) {
    offset_ = start;
    throw Error(format("{}: text of {} bytes at offset {} is longer than the {} allowed", what_,
                       size, start, limit));
  }
  offset_ = start;
  const auto view = blob();
  return {reinterpret_cast<const char*>(view.data()), view.size()};
}

std::span<const std::byte> ByteReader::blob() {
  const std::size_t start = offset_;
  const std::uint32_t size = u32();
  try {
    return bytes(size);
  } catch (...) {
    offset_ = start;
    throw;
  }
}

void ByteReader::expect(std::string_view magic) {
  const std::size_t start = offset_;
  const auto view = bytes(magic.size());
  if (!magic.empty() && std::memcmp(view.data(), magic.data(), magic.size()) != 0) {
    offset_ = start;
    throw Error(format("{}: \"{}\" expected at offset {}; the file is of another kind or damaged",
                       what_, magic, start));
  }
}

void ByteReader::expect_end() const {
  if (remaining() != 0) {
    throw Error(format("{}: {} bytes too many after offset {}", what_, remaining(), offset_));
  }
}

template <typename Unsigned>
void ByteWriter::little_endian(Unsigned value) {
  for (std::size_t i = 0; i < sizeof(Unsigned); ++i) {
    data_.push_back(static_cast<std::byte>(static_cast<std::uint64_t>(value) >> (8 * i)));
  }
}

void ByteWriter::u8(std::uint8_t value) { little_endian(value); }
void ByteWriter::u16(std::uint16_t value) { little_endian(value); }
void ByteWriter::u32(std::uint32_t value) { little_endian(value); }
void ByteWriter::u64(std::uint64_t value) { little_endian(value); }
void ByteWriter::i32(std::int32_t value) { little_endian(std::bit_cast<std::uint32_t>(value)); }
void ByteWriter::i64(std::int64_t value) { little_endian(std::bit_cast<std::uint64_t>(value)); }
void ByteWriter::f64(double value) { little_endian(std::bit_cast<std::uint64_t>(value)); }

void ByteWriter::bytes(std::span<const std::byte> value) {
  data_.insert(data_.end(), value.begin(), value.end());
}

void ByteWriter::length(std::size_t size) {
  if (size > std::numeric_limits<std::uint32_t>::max()) {
    throw Error(format("a field of {} bytes does not fit a 32-bit length", size));
  }
  u32(static_cast<std::uint32_t>(size));
}

void ByteWriter::text(std::string_view value) { blob(std::as_bytes(std::span(value))); }

void ByteWriter::blob(std::span<const std::byte> value) {
  length(value.size());
  bytes(value);
}

}  // namespace kernwright
