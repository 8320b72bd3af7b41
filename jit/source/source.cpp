// Reads and checks source texts.
#include "jit/source/source.h"

#include <iterator>

#include "base/errors.h"
#include "base/format.h"
#include "base/regular_file.h"

namespace kernwright {

Source Source::from_file(const std::filesystem::path& path) {
  RegularFile file = read_regular_file(path.string(), kMaxSourceBytes);
  if (!file.reason.empty()) {
    throw InvalidArgument(
        format("the source file {} cannot be used: {}", path.string(), file.reason));
  }
  Source source;
  source.text = without_byte_order_mark(std::move(file.bytes));
  source.name = path.string();
  std::error_code error;
  const auto absolute = std::filesystem::absolute(path, error);
  source.directory = (error ? path : absolute).parent_path().string();
  return source;
}

std::string without_byte_order_mark(std::string text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.erase(0, kMark.size());
  return text;
}

namespace {

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\r\n\f\v") == std::string::npos;
}

void check_path_text(const char* what, const std::string& text) {
  if (const auto at = text.find_first_of(std::string_view("\0\n\r", 3)); at != std::string::npos) {
    throw InvalidArgument(
        format("{} of a source has a NUL or a line break at offset {}", what, at));
  }
}

}  // namespace

Source with_absolute_folder(Source source) {
  if (source.directory.empty() || source.directory.front() == '/') return source;
  std::error_code error;
  const auto current = std::filesystem::current_path(error);
  if (error) {
    throw InvalidArgument(
        format("the folder \"{}\" of {} is relative to the current folder, which "
               "cannot be found: {}",
               source.directory, source.name, error.message()));
  }
  source.directory = (current / source.directory).string();
  return source;
}

void validate(const Source& source) {
  check_path_text("the name", source.name);
  check_path_text("the directory", source.directory);
  if (source.name.empty()) throw InvalidArgument("the name of a source is empty");
  if (source.text.size() > kMaxSourceBytes) {
    throw InvalidArgument(format("the source of {} has {} bytes; the limit is {}", source.name,
                                 source.text.size(), kMaxSourceBytes));
  }
  if (is_blank(source.text)) {
    throw InvalidArgument(
        format("the source of {} is empty: there is nothing to compile", source.name));
  }
  if (const auto at = source.text.find('\0'); at != std::string::npos) {
    throw InvalidArgument(
        format("the source of {} has a NUL at offset {}: the compiler would stop reading there",
               source.name, at));
  }
}

}  // namespace kernwright
