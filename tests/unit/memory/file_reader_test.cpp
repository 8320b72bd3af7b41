// Parts of files read by threads, against the bytes that were written.
#include "memory/file_reader.h"

#include "base/errors.h"
#include "core/device.h"
#include "memory/buffer.h"
#include "memory/pinned_resource.h"
#include "memory/transfer.h"
#include "unit/base/fault_fs.h"
#include "unit/core/test_device.h"
#include "unit/memory/memory_fixture.h"

#include <doctest/doctest.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

using namespace kernwright;
using test::FaultFs;
using test::FsCall;
using testing::Bytes;
using testing::random_bytes;
using testing::unpooled_buffer;

namespace {

/// A file without a name that holds these bytes.
class ReadableFile {
 public:
  explicit ReadableFile(const Bytes& bytes) : file_(std::tmpfile()) {
    REQUIRE(file_ != nullptr);
    REQUIRE(std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size());
    std::fflush(file_);
  }
  ~ReadableFile() { std::fclose(file_); }
  ReadableFile(const ReadableFile&) = delete;
  ReadableFile& operator=(const ReadableFile&) = delete;
  int descriptor() const { return fileno(file_); }

 private:
  std::FILE* file_;
};

}  // namespace

TEST_CASE("file reader: parts of two files come to their places, for any threads and slots") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Bytes first = random_bytes(10'007, 1), second = random_bytes(4'099, 2);
  const ReadableFile a(first), b(second);
  struct Case {
    const Bytes* from;
    int file;
    std::size_t offset, bytes;
  };
  const std::vector<Case> cases = {{&first, a.descriptor(), 7, 9'000},
                                   {&second, b.descriptor(), 0, 4'099},
                                   {&first, a.descriptor(), 3, 0},
                                   {&second, b.descriptor(), 4'098, 1},
                                   {&first, a.descriptor(), 5'000, 5'007}};
  for (const std::size_t threads : {1, 2, 5}) {
    for (const std::size_t slot_bytes : {1'000, 4'096, 1 << 20}) {
      FaultFs files;
      files.most_bytes = 700;  // short reads go on
      files.fail(FsCall::read_at, EINTR, 3);
      std::vector<Buffer> buffers;
      std::vector<FilePart> parts;
      for (const Case& each : cases) {
        buffers.push_back(unpooled_buffer(device, each.bytes + 1));
        fill(device, buffers.back().address(), 0xa5, 1, each.bytes + 1);
        parts.push_back({each.file, "weights", each.offset, buffers.back().address(), each.bytes});
      }
      read_files(device, parts, {},
                 {.threads = threads, .slot_bytes = slot_bytes, .slots = 2, .system = &files});
      CHECK(files.fired() == 1);
      for (std::size_t i = 0; i < cases.size(); ++i) {
        Bytes found(cases[i].bytes + 1);
        copy_to_host(device, found.data(), buffers[i].address(), found.size());
        const auto begin = cases[i].from->begin() + static_cast<std::ptrdiff_t>(cases[i].offset);
        Bytes expected(begin, begin + static_cast<std::ptrdiff_t>(cases[i].bytes));
        expected.push_back(0xa5);  // nothing beyond
        CHECK(found == expected);
      }
    }
  }
  pinned_resource(device)->trim();
}

TEST_CASE("file reader: errors name the file, and all threads end") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Bytes bytes = random_bytes(1 << 16, 3);
  const ReadableFile file(bytes);
  const Buffer target = unpooled_buffer(device, bytes.size() + 1);
  const std::vector<FilePart> whole = {
      {file.descriptor(), "weights", 0, target.address(), bytes.size()}};
  FaultFs files;
  files.fail(FsCall::read_at, EIO, 9);
  const FileReaderOptions options{.threads = 3, .slot_bytes = 1'000, .slots = 2, .system = &files};
  try {
    read_files(device, whole, {}, options);
    FAIL("no error");
  } catch (const StoreError& error) {
    CHECK(std::string(error.what()).find("weights cannot be read") != std::string::npos);
    CHECK(error.code == EIO);
  }
  files.heal();
  const std::vector<FilePart> beyond = {
      {file.descriptor(), "weights", 1, target.address(), bytes.size()}};
  try {
    read_files(device, beyond, {}, options);
    FAIL("no error");
  } catch (const StoreError& error) {
    CHECK(std::string(error.what()).find("it ends at byte 65536, and 1 more") != std::string::npos);
  }
  read_files(device, whole, {}, options);
  read_files(device, {}, {}, options);
  Bytes found(bytes.size());
  copy_to_host(device, found.data(), target.address(), found.size());
  CHECK(found == bytes);
  pinned_resource(device)->trim();
}
