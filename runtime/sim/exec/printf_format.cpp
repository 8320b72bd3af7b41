// Parses printf conversions and renders each with the host's own snprintf.
#include "sim/exec/printf_format.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>

namespace kernwright::sim {
namespace {

constexpr int kWidthLimit = 1 << 20;

enum class Size : std::uint8_t { none, hh, h, l };

struct Conversion {
  std::string flags;
  std::optional<int> width, precision;
  Size size = Size::none;
  char letter = 0;
};

/// Renders one value; `spec` ends in the right length modifier and conversion letter for T.
template <typename T>
void render(std::string& out, const Conversion& conversion, std::string_view length, T value) {
  std::string spec = "%" + conversion.flags;
  if (conversion.width) spec += std::to_string(*conversion.width);
  if (conversion.precision) spec += "." + std::to_string(*conversion.precision);
  spec += length;
  spec += conversion.letter;
  const int size = std::snprintf(nullptr, 0, spec.c_str(), value);
  if (size <= 0) return;
  const std::size_t start = out.size();
  out.resize(start + static_cast<std::size_t>(size) + 1);
  std::snprintf(out.data() + start, static_cast<std::size_t>(size) + 1, spec.c_str(), value);
  out.pop_back();
}

class Formatter {
 public:
  Formatter(std::string_view format, const ArgumentReader& argument, const StringReader& string)
      : format_(format), argument_(argument), string_(string) {}

  std::optional<PrintfResult> run() {
    while (position_ < format_.size()) {
      const std::size_t percent = std::min(format_.find('%', position_), format_.size());
      result_.text.append(format_.substr(position_, percent - position_));
      position_ = percent;
      if (position_ < format_.size() && !convert()) return std::nullopt;
    }
    return std::move(result_);
  }

 private:
  char peek() const { return position_ < format_.size() ? format_[position_] : '\0'; }

  std::optional<std::uint64_t> next(std::uint32_t bytes) {
    offset_ = (offset_ + bytes - 1) / bytes * bytes;
    const auto value = argument_(offset_, bytes);
    offset_ += bytes;
    return value;
  }

  /// The argument of a conversion.
  std::optional<std::uint64_t> take(std::uint32_t bytes) {
    const auto value = next(bytes);
    if (value) ++result_.arguments;
    return value;
  }

  /// Digits or '*'. False when the buffer cannot be read.
  bool number(std::optional<int>& out) {
    if (peek() == '*') {
      ++position_;
      const auto value = take(4);
      if (!value) return false;
      out = std::clamp(static_cast<std::int32_t>(*value), -kWidthLimit, kWidthLimit);
      return true;
    }
    while (peek() >= '0' && peek() <= '9') {
      out = std::min(out.value_or(0) * 10 + (peek() - '0'), kWidthLimit);
      ++position_;
    }
    return true;
  }

  bool parse(Conversion& conversion) {
    while (position_ < format_.size() &&
           std::string_view("# 0+-").find(peek()) != std::string_view::npos)
      conversion.flags += format_[position_++];
    if (!number(conversion.width)) return false;
    if (conversion.width.value_or(0) < 0) {  // a negative '*' width means: to the left
      conversion.flags += '-';
      conversion.width = -*conversion.width;
    }
    if (peek() == '.') {
      ++position_;
      conversion.precision = 0;
      if (!number(conversion.precision)) return false;
      if (*conversion.precision < 0) conversion.precision.reset();
    }
    while (position_ < format_.size() &&
           std::string_view("hlLjzt").find(peek()) != std::string_view::npos) {
      const char letter = format_[position_++];
      if (letter == 'h') {
        conversion.size = conversion.size == Size::h ? Size::hh : Size::h;
      } else if (letter != 'L') {
        conversion.size = Size::l;  // all of l, ll, j, z, t are 64-bit on the device
      }
    }
    conversion.letter = peek();
    if (position_ < format_.size()) ++position_;
    return true;
  }

  bool convert() {
    const std::size_t start = position_++;
    if (peek() == '%') {
      ++position_;
      result_.text += '%';
      return true;
    }
    Conversion conversion;
    if (!parse(conversion)) return false;
    switch (conversion.letter) {
      case 'd':
      case 'i': return integer(conversion, true);
      case 'o':
      case 'u':
      case 'x':
      case 'X': return integer(conversion, false);
      case 'c':
        return show(conversion, 4, [](std::uint64_t raw) {
          return static_cast<int>(static_cast<unsigned char>(raw));
        });
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        return show(conversion, 8, [](std::uint64_t raw) { return std::bit_cast<double>(raw); });
      case 'p':
        return show(conversion, 8,
                    [](std::uint64_t raw) { return reinterpret_cast<const void*>(raw); });
      case 's': return text(conversion);
      default: break;
    }
    result_.text.append(format_.substr(start, position_ - start));
    return true;
  }

  bool integer(const Conversion& conversion, bool is_signed) {
    const auto raw = take(conversion.size == Size::l ? 8 : 4);
    if (!raw) return false;
    std::uint64_t value = *raw;
    const int unused = conversion.size == Size::l    ? 0
                       : conversion.size == Size::h  ? 48
                       : conversion.size == Size::hh ? 56
                                                     : 32;
    value <<= unused;
    if (is_signed) {
      render(result_.text, conversion, "ll", static_cast<long long>(value) >> unused);
    } else {
      render(result_.text, conversion, "ll", static_cast<unsigned long long>(value) >> unused);
    }
    return true;
  }

  /// Shows the argument as `as` makes of its bytes.
  template <typename As>
  bool show(const Conversion& conversion, std::uint32_t bytes, As as) {
    const auto raw = take(bytes);
    if (raw) render(result_.text, conversion, "", as(*raw));
    return raw.has_value();
  }

  bool text(const Conversion& conversion) {
    const auto raw = take(8);
    if (!raw) return false;
    std::optional<std::string> value = "(null)";
    const auto limit = static_cast<std::size_t>(conversion.precision.value_or(kWidthLimit));
    if (*raw != 0) value = string_(*raw, limit);
    if (!value) return false;
    render(result_.text, conversion, "", value->c_str());
    return true;
  }

  std::string_view format_;
  const ArgumentReader& argument_;
  const StringReader& string_;
  std::size_t position_ = 0;
  std::uint64_t offset_ = 0;
  PrintfResult result_;
};

}  // namespace

std::optional<PrintfResult> format_printf(std::string_view format, const ArgumentReader& argument,
                                          const StringReader& string) {
  return Formatter(format, argument, string).run();
}

}  // namespace kernwright::sim
