// Reading the architecture out of a cubin's ELF header or out of PTX directives.
#include "core/image/image_info.h"

#include "base/format.h"

#include <cctype>
#include <cstring>

namespace kernwright {
namespace {

constexpr std::size_t kElfHeaderSize = 64;
constexpr std::size_t kAbiVersionOffset = 8;
constexpr std::size_t kMachineOffset = 18;
constexpr std::size_t kFlagsOffset = 48;
constexpr unsigned kMachineCuda = 190;
/// From this ABI version on (CUDA 13) the architecture is the second byte of e_flags, before the
/// first.
constexpr unsigned kSecondByteAbi = 8;

bool is_elf(std::string_view image) noexcept {
  return image.size() >= kElfHeaderSize && image.substr(0, 4) ==
                                               "\x7f"
                                               "ELF";
}

unsigned byte_at(std::string_view image, std::size_t offset) noexcept {
  return static_cast<unsigned char>(image[offset]);
}

/// The word after `directive` at the start of a line, within the directives that open PTX.
std::string word_after(std::string_view text, std::string_view directive) {
  std::size_t at = text.find(directive);
  const auto begins_line = [&] {
    const std::size_t before = text.substr(0, at).find_last_not_of(" \t");
    return before == std::string_view::npos || text[before] == '\n';
  };
  while (at != std::string_view::npos && !begins_line()) at = text.find(directive, at + 1);
  if (at == std::string_view::npos) return {};
  at += directive.size();
  while (at < text.size() && (text[at] == ' ' || text[at] == '\t')) ++at;
  std::size_t end = at;
  while (end < text.size() && (std::isalnum(static_cast<unsigned char>(text[end])) != 0 ||
                               text[end] == '_' || text[end] == '.')) {
    ++end;
  }
  return std::string(text.substr(at, end - at));
}

}  // namespace

bool is_cubin(std::string_view image) noexcept {
  return is_elf(image) &&
         byte_at(image, kMachineOffset) + 256 * byte_at(image, kMachineOffset + 1) == kMachineCuda;
}

ImageInfo describe_image(std::string_view image) {
  ImageInfo info;
  if (is_elf(image)) {
    if (!is_cubin(image)) return info;
    info.kind = ImageKind::cubin;
    const bool second_byte = byte_at(image, kAbiVersionOffset) >= kSecondByteAbi;
    info.target = format("sm_{}", byte_at(image, kFlagsOffset + (second_byte ? 1 : 0)));
    return info;
  }
  constexpr std::size_t kDirectivesWithin = 4096;  // a banner comment comes first
  const std::string_view head = image.substr(0, kDirectivesWithin);
  info.ptx_version = word_after(head, ".version");
  info.target = word_after(head, ".target");
  if (!info.ptx_version.empty()) info.kind = ImageKind::ptx;
  return info;
}

std::string ImageInfo::to_string() const {
  const std::string for_target = target.empty() ? "" : " for " + target;
  switch (kind) {
    case ImageKind::cubin:
      return "a cubin" + for_target;
    case ImageKind::ptx:
      return format("PTX {}{}", ptx_version, for_target);
    case ImageKind::unknown:
      break;
  }
  return "an image that is neither a cubin nor PTX";
}

std::string newest_driver_ptx(int driver_version) {
  const int major = driver_version / 1000;
  const int minor = driver_version % 1000 / 10;
  // CUDA 12.6 brought no PTX version of its own, so the later ones of 12 are one behind.
  if (major == 12) return format("8.{}", minor < 6 ? minor : minor - 1);
  if (major == 13) return format("9.{}", minor);
  return {};
}

}  // namespace kernwright
