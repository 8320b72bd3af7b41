// Encodes and decodes entries, and stamps header folders.
#include "jit/cache/cache_entry.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/byte_reader.h"
#include "base/errors.h"
#include "base/format.h"
#include "base/hash.h"

namespace kernwright {
namespace {

constexpr std::string_view kEntryMagic{"KWENT\r\n\x1a", 8};
constexpr std::uint32_t kMaxEntryText = std::uint32_t{1} << 20;
constexpr std::uint32_t kMaxCount = std::uint32_t{1} << 16;

std::span<const std::byte> as_bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::vector<std::byte> encode_body(const CacheEntry& entry) {
  ByteWriter out;
  out.text(entry.key_fields);
  out.text(entry.source);
  out.u8(entry.included.needs_cuda_headers ? 1 : 0);
  out.u32(static_cast<std::uint32_t>(entry.included.files.size()));
  for (const IncludedFile& file : entry.included.files) {
    out.text(file.path);
    out.bytes(file.hash.bytes);
  }
  out.u32(static_cast<std::uint32_t>(entry.header_folders.size()));
  for (const HeaderFolder& folder : entry.header_folders) {
    out.text(folder.path);
    out.u64(folder.stamp);
  }
  out.blob(as_bytes(entry.object_bytes));
  return out.take();
}

std::uint32_t read_count(ByteReader& in) {
  const std::uint32_t count = in.u32();
  if (count > kMaxCount) throw Error(format("a cache entry counts {} headers", count));
  return count;
}

CacheEntry decode_body(ByteReader& in) {
  CacheEntry entry;
  entry.key_fields = in.text(std::uint32_t{16} << 20);
  entry.source = in.text(kMaxEntryText);
  entry.included.needs_cuda_headers = in.u8() != 0;
  for (auto n = read_count(in); n > 0; --n) {
    IncludedFile file;
    file.path = in.text(kMaxEntryText);
    const auto hash = in.bytes(file.hash.bytes.size());
    std::copy(hash.begin(), hash.end(), file.hash.bytes.begin());
    entry.included.files.push_back(std::move(file));
  }
  for (auto n = read_count(in); n > 0; --n) {
    std::string path = in.text(kMaxEntryText);
    entry.header_folders.push_back({std::move(path), in.u64()});
  }
  const auto code = in.blob();
  entry.object_bytes.assign(reinterpret_cast<const char*>(code.data()), code.size());
  in.expect_end();
  return entry;
}

Sha256Digest checksum(std::span<const std::byte> head, std::span<const std::byte> body) {
  return Sha256().update(head).update(body).digest();
}

}  // namespace

std::vector<HeaderFolder> header_folders_of(const std::vector<std::string>& paths) {
  std::vector<HeaderFolder> folders;
  for (const std::string& path : paths) {
    Hasher hasher;
    // Files of CUDA's own folder or of its C++ library; they differ in each release.
    for (const char* name : {"", "/cuda_fp16.h", "/cuda_runtime_api.h", "/cuda/std/version"}) {
      struct stat status {};
      const bool is_there = ::stat((path + name).c_str(), &status) == 0;
      hasher.field(static_cast<std::uint64_t>(is_there));
      if (!is_there || *name == '\0') continue;  // the folder's own time changes with its use
      hasher.field(static_cast<std::uint64_t>(status.st_size));
      hasher.field(static_cast<std::uint64_t>(status.st_mtim.tv_sec));
      hasher.field(static_cast<std::uint64_t>(status.st_mtim.tv_nsec));
    }
    folders.push_back({path, hasher.digest().low});
  }
  return folders;
}

std::vector<std::byte> encode_entry(const CacheEntry& entry) {
  const std::vector<std::byte> body = encode_body(entry);
  ByteWriter out;
  out.bytes(as_bytes(kEntryMagic));
  out.u32(kCacheEntryVersion);
  out.u64(body.size());
  const Sha256Digest sum = checksum(out.data(), body);
  out.bytes(sum.bytes);
  out.bytes(body);
  return out.take();
}

CacheEntry decode_entry(std::span<const std::byte> bytes) {
  ByteReader in(bytes, "cache entry");
  in.expect(kEntryMagic);
  if (const std::uint32_t version = in.u32(); version != kCacheEntryVersion) {
    throw Error(format("cache entry has format version {}", version));
  }
  const std::uint64_t size = in.u64();
  const auto head = bytes.first(in.offset());
  Sha256Digest sum;
  const auto stored = in.bytes(sum.bytes.size());
  std::copy(stored.begin(), stored.end(), sum.bytes.begin());
  if (size != in.remaining()) {
    throw Error(format("cache entry has {} bytes instead of {}", in.remaining(), size));
  }
  const auto body = in.bytes(size);
  if (checksum(head, body) != sum) throw Error("cache entry is damaged: its SHA-256 differs");
  ByteReader body_in(body, "cache entry");
  return decode_body(body_in);
}

bool same_headers(const IncludeClosure& a, const IncludeClosure& b) {
  return a.needs_cuda_headers == b.needs_cuda_headers &&
         std::equal(a.files.begin(), a.files.end(), b.files.begin(), b.files.end(),
                    [](const IncludedFile& x, const IncludedFile& y) {
                      return x.path == y.path && x.hash == y.hash;
                    });
}

}  // namespace kernwright
