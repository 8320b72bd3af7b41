// Device memory written to files, against its bytes.
#include "memory/file_writer.h"

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
#include <string>

using namespace kernwright;
using test::FaultFs;
using test::FsCall;
using testing::Bytes;
using testing::kMiB;
using testing::unpooled_buffer;

TEST_CASE("file writer: all bytes are written in order, whatever number of pieces they make") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  // 0, 1, 2 and 5 pieces of 8 MB in the ring of three.
  for (const std::size_t size : {std::size_t{0}, std::size_t{5}, 9 * kMiB, 33 * kMiB + 7}) {
    Bytes bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<unsigned char>(i % 251);
    const Buffer source = unpooled_buffer(device, size + 1);
    copy_to_device(device, source.address(), bytes.data(), size);
    std::FILE* const file = std::tmpfile();
    REQUIRE(file != nullptr);
    FaultFs files;
    write_file(device, fileno(file), "out", source.address(), size, {}, files);
    Bytes found(size);
    std::rewind(file);
    CHECK(std::fread(found.data(), 1, size, file) == size);
    CHECK(std::fgetc(file) == EOF);
    CHECK(found == bytes);
    std::fclose(file);
  }
  pinned_resource(device)->trim();
}

TEST_CASE("file writer: a full disk is an error with the name and the reason") {
  const testing::Recorded recorded;
  Device& device = recorded.device;
  const Buffer source = unpooled_buffer(device, 100);
  fill(device, source.address(), 0, 1, 100);
  std::FILE* const file = std::tmpfile();
  REQUIRE(file != nullptr);
  FaultFs files;
  files.fail(FsCall::write, ENOSPC);
  try {
    write_file(device, fileno(file), "out", source.address(), 100, {}, files);
    FAIL("no error");
  } catch (const StoreError& error) {
    CHECK(std::string(error.what()).find("out cannot be written: ") == 0);
    CHECK(error.code == ENOSPC);
  }
  std::fclose(file);
  pinned_resource(device)->trim();
}
