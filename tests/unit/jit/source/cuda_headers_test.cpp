// Where CUDA's headers come from.
#include "jit/source/cuda_headers.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "jit/cache/disk_cache.h"
#include "unit/jit/jit_fixture.h"

using namespace kernwright;
using namespace kernwright::testing;

namespace {

/// An NVRTC with a path only.
LoadedNvrtc library_at(const std::filesystem::path& path) {
  LoadedNvrtc nvrtc;
  nvrtc.path = path.string();
  nvrtc.major = 12;
  nvrtc.minor = 8;
  return nvrtc;
}

bool has_bundle(const LoadedNvrtc& nvrtc) {
  nvrtcBundledHeadersInfo info{};
  const char* log = nullptr;
  return nvrtc.api.nvrtcGetBundledHeadersInfo(&info, &log) == NVRTC_SUCCESS && info.available != 0;
}

}  // namespace

TEST_CASE("cuda headers: NVRTC's bundle is unpacked once, into a private folder") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  if (!has_bundle(nvrtc)) {
    MESSAGE("this NVRTC carries no headers");
    return;
  }
  const TemporaryFolder folder;
  const std::string cache = (folder.path() / "a" / "cache").string();
  const CudaHeaders first = find_cuda_headers(nvrtc, {cache, {}});
  CHECK(first.origin == "NVRTC's bundle");
  REQUIRE(first.folders.size() == 2);
  CHECK(std::filesystem::exists(first.folders[0] + "/cuda_fp16.h"));
  CHECK(std::filesystem::exists(first.folders[1] + "/cuda/std/cstdint"));
  struct stat status {};
  REQUIRE(::stat(first.folders[0].c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0700);
  const auto written = std::filesystem::last_write_time(first.folders[0] + "/cuda_fp16.h");
  const CudaHeaders second = find_cuda_headers(nvrtc, {cache, {}});
  CHECK(second.folders == first.folders);
  CHECK(std::filesystem::last_write_time(first.folders[0] + "/cuda_fp16.h") == written);
}

TEST_CASE("cuda headers: unpacked ones are whole again after any damage, and are counted") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  if (!has_bundle(nvrtc)) {
    MESSAGE("this NVRTC carries no headers");
    return;
  }
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  const std::string cache = (folder.path() / "cache").string();
  const fs::path headers = find_cuda_headers(nvrtc, {cache, {}}).folders.at(0);
  const fs::path file = headers / "cuda_fp16.h";
  const fs::path deep = headers / "cccl/cuda/std/array";
  const auto size = fs::file_size(file);
  DiskCacheOptions options;
  options.directory = cache;
  DiskCache disk(options);
  const auto all = disk.info().header_bytes;
  CHECK(all > size);
  CHECK(disk.verify().damaged.empty());

  const auto heals = [&] {
    const auto damaged = disk.verify(false).damaged;
    find_cuda_headers(nvrtc, {cache, {}});
    CHECK(fs::file_size(file) == size);
    CHECK(fs::exists(deep));
    CHECK(disk.verify().damaged.empty());
    return damaged;
  };
  fs::remove(deep);
  const auto missing = heals();
  REQUIRE(missing.size() == 1);
  CHECK(missing[0].file == headers.filename().string() + "/cccl/cuda/std/array");
  CHECK(missing[0].reason == "it is missing");
  fs::resize_file(file, 10);
  CHECK(heals().size() == 1);
  fs::remove_all(headers / "cccl");
  CHECK(heals().size() > 100);
  fs::remove_all(headers);
  fs::create_directory(headers);
  fs::permissions(headers, fs::perms::owner_all);
  CHECK(heals().size() == 1);
  // The same size and time: only a read of the file can tell.
  const auto written = fs::last_write_time(file);
  { std::fstream(file, std::ios::in | std::ios::out) << "x"; }
  fs::last_write_time(file, written);
  CHECK(disk.verify(false).damaged.size() == 1);
  CHECK(disk.verify(true).damaged.size() == 1);
  CHECK(heals().empty());

  CHECK(disk.trim(all + 1).bytes == 0);
  CHECK(disk.trim(all - 1).bytes == all);
  CHECK(disk.info().header_bytes == 0);
  CHECK(heals().empty());
  CHECK(disk.clear().bytes == all);
  CHECK(fs::is_empty(folder.path() / "cache/objects"));
  CHECK_FALSE(fs::exists(headers));
}

TEST_CASE("cuda headers: below a folder that others can write to they are used by a handle") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  if (!has_bundle(nvrtc)) {
    MESSAGE("this NVRTC carries no headers");
    return;
  }
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  const auto cache = folder.path() / "cache";
  const CudaHeaders headers = find_cuda_headers(nvrtc, {cache.string(), {}});
  REQUIRE(headers.is_bundle);
  // Somebody puts a folder of the same name in its place.
  std::filesystem::rename(cache, folder.path() / "aside");
  std::filesystem::create_directories(cache / ("headers-" + nvrtc.version()));
  auto request = request_for("#include <cuda_fp16.h>\n__global__ void k(__half* x) {}\n");
  request.header_folders = headers.folders;
  CHECK(Compiler(nvrtc).compile(request).kernels.size() == 1);
}

TEST_CASE("cuda headers: several processes may unpack at once") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  if (!has_bundle(nvrtc)) {
    MESSAGE("this NVRTC carries no headers");
    return;
  }
  const TemporaryFolder folder;
  const std::string cache = (folder.path() / "cache").string();
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const CudaHeaders headers = find_cuda_headers(nvrtc, {cache, {}});
      ::_exit(headers.origin == "NVRTC's bundle" ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
}

TEST_CASE("cuda headers: a folder that others can write is not trusted") {
  const LoadedNvrtc& nvrtc = newest_nvrtc();
  if (!has_bundle(nvrtc)) {
    MESSAGE("this NVRTC carries no headers");
    return;
  }
  const TemporaryFolder folder;
  REQUIRE(::chmod(folder.path().c_str(), 0777) == 0);
  const CudaHeaders headers = find_cuda_headers(nvrtc, {folder.path().string(), {}});
  CHECK(headers.origin != "NVRTC's bundle");
  CHECK(contains(headers.note, "other users can write"));
  CHECK(contains(find_cuda_headers(nvrtc, {"", {}}).note, "no cache folder"));
  const auto file = folder.write("file", "");
  CHECK(contains(find_cuda_headers(nvrtc, {(file / "x").string(), {}}).note, "cannot be"));
}

TEST_CASE("cuda headers: pip packages beside the library, then a toolkit") {
  const TemporaryFolder folder;
  const auto library = folder.write("site/nvidia/cu13/lib/libnvrtc.so.13", "");
  const auto toolkit = folder.path() / "toolkit";
  CHECK(find_cuda_headers(library_at(library), {"", {toolkit.string()}}).origin == "none");
  folder.write("toolkit/include/cuda_fp16.h", "");
  CHECK(find_cuda_headers(library_at(library), {"", {toolkit.string()}}).origin == "toolkit");
  folder.write("site/nvidia/cu13/include/cuda_fp16.h", "");
  folder.write("site/nvidia/cu13/include/cccl/x.h", "");
  const CudaHeaders beside = find_cuda_headers(library_at(library), {"", {toolkit.string()}});
  CHECK(beside.origin == "beside NVRTC");
  CHECK(beside.folders ==
        std::vector<std::string>{(folder.path() / "site/nvidia/cu13/include").string(),
                                 (folder.path() / "site/nvidia/cu13/include/cccl").string()});
}

TEST_CASE("cuda headers: a package without the C++ library takes a toolkit's") {
  const TemporaryFolder folder;
  const auto library = folder.write("site/nvidia/cu13/lib/libnvrtc.so.13", "");
  const auto toolkit = folder.path() / "toolkit";
  folder.write("site/nvidia/cu13/include/cuda_fp16.h", "");
  folder.write("toolkit/include/cccl/cuda/std/cstdint", "");
  const CudaHeaders headers = find_cuda_headers(library_at(library), {"", {toolkit.string()}});
  CHECK(headers.origin == "beside NVRTC, C++ library of a toolkit");
  CHECK(headers.folders ==
        std::vector<std::string>{(folder.path() / "site/nvidia/cu13/include").string(),
                                 (toolkit / "include/cccl").string()});
  CHECK(find_cuda_headers(library_at(library), {"", {}}).folders.size() == 1);
}

TEST_CASE("cuda headers: a package without what mma.h includes takes a toolkit's") {
  const TemporaryFolder folder;
  const auto library = folder.write("site/nvidia/cu13/lib/libnvrtc.so.13", "");
  const std::string package = (folder.path() / "site/nvidia/cu13/include").string();
  const auto toolkit = folder.path() / "toolkit";
  folder.write("site/nvidia/cu13/include/cuda_fp16.h", "");
  folder.write("toolkit/include/crt/mma.h", "");
  const CudaHeaders headers = find_cuda_headers(library_at(library), {"", {toolkit.string()}});
  CHECK(headers.origin == "beside NVRTC, crt of a toolkit");
  CHECK(headers.folders == std::vector<std::string>{package, (toolkit / "include").string()});
  folder.write("site/nvidia/cu13/include/crt/mma.h", "");
  CHECK(find_cuda_headers(library_at(library), {"", {toolkit.string()}}).folders ==
        std::vector<std::string>{package});
}

TEST_CASE("cuda headers: a toolkit of another CUDA release is left alone") {
  const TemporaryFolder folder;
  const auto library = folder.write("site/nvidia/cu13/lib/libnvrtc.so.13", "");
  const auto toolkit = folder.path() / "toolkit";
  folder.write("toolkit/include/cuda_fp16.h", "");
  LoadedNvrtc nvrtc = library_at(library);
  nvrtc.major = 13;
  folder.write("toolkit/include/cuda.h", "/* */\n#define CUDA_VERSION 12080\n");
  CHECK(find_cuda_headers(nvrtc, {"", {toolkit.string()}}).origin == "none");
  folder.write("toolkit/include/cuda.h", "/* */\n#define CUDA_VERSION 13000\n");
  CHECK(find_cuda_headers(nvrtc, {"", {toolkit.string()}}).origin == "toolkit");
}

TEST_CASE("cuda headers: the packages of CUDA 12 lie in folders of their own") {
  const TemporaryFolder folder;
  const auto library = folder.write("nvidia/cuda_nvrtc/lib/libnvrtc.so.12", "");
  folder.write("nvidia/cuda_runtime/include/cuda_fp16.h", "");
  folder.write("nvidia/cuda_cccl/include/x.h", "");
  const CudaHeaders headers = find_cuda_headers(library_at(library), {"", {}});
  CHECK(headers.folders ==
        std::vector<std::string>{(folder.path() / "nvidia/cuda_runtime/include").string(),
                                 (folder.path() / "nvidia/cuda_cccl/include").string()});
}

TEST_CASE("cuda headers: what they are for compiles with each NVRTC that has some") {
  for (const LoadedNvrtc& nvrtc : real_nvrtcs()) {
    const CudaHeaders headers = cuda_headers(nvrtc);
    if (headers.folders.empty()) {
      MESSAGE("no headers for NVRTC " << nvrtc.version());
      continue;
    }
    // A machine may have the headers without the C++ library: then only the former are asked for.
    const bool library =
        std::any_of(headers.folders.begin(), headers.folders.end(), [](const std::string& name) {
          return std::filesystem::exists(std::filesystem::path(name) / "cuda/std/cstdint");
        });
    auto request =
        request_for(std::string("#include <cuda_fp16.h>\n") +
                    (library ? "#include <cuda/std/cstdint>\nusing index = cuda::std::uint32_t;\n"
                             : "using index = unsigned int;\n") +
                    "__global__ void k(__half* x, const __half2* y, index n) { x[n] = y[n].x; }");
    request.header_folders = headers.folders;
    const ObjectCode code = Compiler(nvrtc).compile(request);
    CHECK(code.kernels.at(0).to_string() == "k(__half* x, const __half2* y, unsigned int n)");
    CHECK(code.kernels[0].parameters[0].scalar == ScalarType::float16);
    CHECK(code.kernels[0].parameters[1].lanes == 2);
  }
}
