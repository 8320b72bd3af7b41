// Hashes the builtins library, and reads and writes the records of identities.
#include "jit/cache/compiler_identity.h"

#include <fcntl.h>

#include <algorithm>

#include "base/atomic_file.h"
#include "base/byte_reader.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/log.h"
#include "jit/cache/checked_file.h"

namespace kernwright {
namespace {

/// File: magic, version, SHA-256 of the body, body.
constexpr std::string_view kIdentityMagic{"KWNVRTC\n", 8};
constexpr std::uint32_t kFormatVersion = 1;
constexpr std::uint32_t kMaxIdentityText = 1 << 16;
constexpr std::uint32_t kMaxArchs = 1024;
constexpr std::uint64_t kMaxFile = 1 << 20;
constexpr std::string_view kSuffix = ".nvrtc";

/// A file as it was: another size, time or inode means other contents.
struct FileStamp {
  std::uint64_t size = 0, inode = 0;
  std::int64_t modified = 0;  ///< ns
  bool operator==(const FileStamp&) const = default;
};

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::nullopt;
  return FileStamp{static_cast<std::uint64_t>(status.st_size),
                   static_cast<std::uint64_t>(status.st_ino),
                   std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

struct Record {
  std::string first;  ///< the library that the search met first
  FileStamp first_stamp, library_stamp, builtins_stamp;
  CompilerIdentity identity;
};

void write(ByteWriter& out, const FileStamp& stamp) {
  out.u64(stamp.size);
  out.u64(stamp.inode);
  out.i64(stamp.modified);
}

FileStamp read_stamp(ByteReader& in) {
  FileStamp stamp;
  stamp.size = in.u64();
  stamp.inode = in.u64();
  stamp.modified = in.i64();
  return stamp;
}

std::vector<std::byte> encode(const Record& record) {
  const CompilerIdentity& identity = record.identity;
  ByteWriter body;
  body.text(record.first);
  write(body, record.first_stamp);
  body.text(identity.library_path);
  write(body, record.library_stamp);
  body.text(identity.builtins_path);
  write(body, record.builtins_stamp);
  body.i32(identity.major);
  body.i32(identity.minor);
  body.u64(identity.library_size);
  body.bytes(identity.builtins.bytes);
  body.u32(static_cast<std::uint32_t>(identity.archs.size()));
  for (const int arch : identity.archs) body.i32(arch);
  ByteWriter out;
  out.bytes(std::as_bytes(std::span(kIdentityMagic)));
  out.u32(kFormatVersion);
  out.bytes(sha256(body.data()).bytes);
  out.bytes(body.data());
  return out.take();
}

/// Throws Error for an incomplete or invalid record.
Record decode(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "record of an NVRTC");
  in.expect(kIdentityMagic);
  if (in.u32() != kFormatVersion) throw Error("record of an NVRTC has another format");
  const Sha256Digest checksum = read_digest(in);
  if (sha256(bytes.subspan(in.offset())) != checksum) {
    throw Error("record of an NVRTC is damaged");
  }
  Record record;
  CompilerIdentity& identity = record.identity;
  record.first = in.text(kMaxIdentityText);
  record.first_stamp = read_stamp(in);
  identity.library_path = in.text(kMaxIdentityText);
  record.library_stamp = read_stamp(in);
  identity.builtins_path = in.text(kMaxIdentityText);
  record.builtins_stamp = read_stamp(in);
  identity.major = in.i32();
  identity.minor = in.i32();
  identity.library_size = in.u64();
  identity.builtins = read_digest(in);
  const std::uint32_t count = in.u32();
  if (count == 0 || count > kMaxArchs) throw Error("record of an NVRTC has no architectures");
  for (std::uint32_t i = 0; i < count; ++i) identity.archs.push_back(in.i32());
  in.expect_end();
  return record;
}

std::string file_of(const std::string& first) {
  return sha256(first).to_hex().substr(0, 32) + std::string(kSuffix);
}

std::optional<Record> read_record(FileSystem& system, int directory, const std::string& name,
                                  std::int64_t* modified = nullptr) {
  const CheckedFile file = read_checked(system, directory, name, kMaxFile);
  if (file.outcome != ReadOutcome::read) return std::nullopt;
  if (modified != nullptr) *modified = file.status.st_mtime;
  try {
    return decode(file.bytes);
  } catch (const Error& error) {
    log(LogLevel::debug, "{}: {}", name, error.what());
    remove_same(system, directory, name, file.status);
    return std::nullopt;
  }
}

bool is_current(const Record& record) {
  const std::string& library = record.identity.library_path;
  const auto first = stamp_of(record.first);
  return first == record.first_stamp &&
         (library == record.first ? first : stamp_of(library)) == record.library_stamp &&
         stamp_of(record.identity.builtins_path) == record.builtins_stamp;
}

std::optional<Sha256Digest> hash_file(const std::string& path) {
  FileSystem& system = FileSystem::real();
  const FileHandle file(system, system.open(AT_FDCWD, path.c_str(), O_RDONLY, 0));
  if (!file) return std::nullopt;
  std::vector<std::byte> buffer(std::size_t{1} << 20);
  Sha256 hasher;
  while (true) {
    const ssize_t count = read_fully(system, file.get(), buffer.data(), buffer.size());
    if (count < 0) return std::nullopt;
    hasher.update(std::span(buffer).first(static_cast<std::size_t>(count)));
    if (static_cast<std::size_t>(count) < buffer.size()) return hasher.digest();
  }
}

}  // namespace

std::string CompilerIdentity::version() const { return format("{}.{}", major, minor); }

CompilerIdentity identify(const NvrtcFacts& nvrtc) {
  CompilerIdentity identity;
  identity.major = nvrtc.major;
  identity.minor = nvrtc.minor;
  identity.archs = nvrtc.archs;
  identity.library_path = nvrtc.path;
  identity.builtins_path = nvrtc.builtins_path;
  if (const auto stamp = stamp_of(nvrtc.path)) identity.library_size = stamp->size;
  identity.builtins =
      hash_file(nvrtc.builtins_path).value_or(sha256("path:" + nvrtc.builtins_path));
  return identity;
}

CompilerRecords::CompilerRecords(FileSystem& system, SecureDirectory directory)
    : system_(system), directory_(std::move(directory)) {}

std::optional<CompilerIdentity> CompilerRecords::find(const NvrtcSearch& search) const {
  if (!directory_) return std::nullopt;
  const std::string first = first_nvrtc_candidate(search);
  if (first.empty()) return std::nullopt;
  const auto record = read_record(system_, directory_.get(), file_of(first));
  if (!record || record->first != first || !is_current(*record)) return std::nullopt;
  return record->identity;
}

void CompilerRecords::store(const NvrtcSearch& search, const CompilerIdentity& identity) const {
  if (!directory_) return;
  Record record{first_nvrtc_candidate(search), {}, {}, {}, identity};
  const auto first = stamp_of(record.first), library = stamp_of(identity.library_path),
             builtins = stamp_of(identity.builtins_path);
  if (!first || !library || !builtins) return;
  record.first_stamp = *first;
  record.library_stamp = *library;
  record.builtins_stamp = *builtins;
  const int result =
      write_atomically(system_, directory_.get(), file_of(record.first), encode(record));
  if (result < 0) {
    log(LogLevel::debug, "what is known of {} was not written: {}", identity.library_path,
        describe_failure(result));
  }
}

std::vector<CompilerIdentity> CompilerRecords::all() const {
  std::vector<std::string> names;
  if (!directory_ || system_.list(directory_.get(), names) < 0) return {};
  std::vector<std::pair<std::int64_t, CompilerIdentity>> found;
  for (const std::string& name : names) {
    if (!name.ends_with(kSuffix)) continue;
    std::int64_t modified = 0;
    if (auto record = read_record(system_, directory_.get(), name, &modified)) {
      found.emplace_back(modified, std::move(record->identity));
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<CompilerIdentity> result;
  for (auto& [modified, identity] : found) result.push_back(std::move(identity));
  return result;
}

}  // namespace kernwright
