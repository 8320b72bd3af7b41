// Memory of the simulated device: addresses, look-up, guard gaps, history, limits, threads.
#include "sim/mem/memory.h"

#include "base/errors.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <random>
#include <thread>
#include <vector>

using namespace kernwright::sim;

namespace {

constexpr std::uint64_t kMiB = 1 << 20;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
/// The signal that ends a child which reads the byte at host address `address`, or 0.
int signal_of_read(std::uint64_t address) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);  // the test runner's handler would report it as a failure
    const volatile char* byte = reinterpret_cast<const char*>(address);
    _exit(*byte == 0 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
#endif

/// For its scope the process gets no more than `bytes` of further address space.
class AddressLimit {
 public:
  explicit AddressLimit(std::uint64_t bytes) {
    REQUIRE(getrlimit(RLIMIT_AS, &before_) == 0);
    std::uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limit = before_;
    limit.rlim_cur = pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)) + bytes;
    REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
  }
  ~AddressLimit() { setrlimit(RLIMIT_AS, &before_); }
  AddressLimit(const AddressLimit&) = delete;
  AddressLimit& operator=(const AddressLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE(
    "memory: where address space is short there is less memory, but not less than asked for") {
  const std::uint64_t gib = 1024 * kMiB, room = 40 * gib;
  const AddressLimit limit(room);
  CHECK_THROWS_AS(Memory(4 * gib), kernwright::OutOfMemory);
  CHECK_THROWS_AS(Memory(8 * gib, 4 * gib), kernwright::OutOfMemory);
  Memory first(4 * gib, 64 * kMiB);
  CHECK(first.capacity() < 4 * gib);
  CHECK(first.capacity() >= 64 * kMiB);
  // All of it can be had in one piece, and half of the room is left.
  const auto address = first.allocate(first.capacity(), AllocationKind::device);
  REQUIRE(address.has_value());
  host_pointer(*address)[first.capacity() - 1] = std::byte{7};
  void* const rest = mmap(nullptr, room / 2, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  CHECK(rest != MAP_FAILED);
  munmap(rest, room / 2);
  const Memory second(4 * gib, 64 * kMiB);
  CHECK(second.capacity() <= first.capacity());
}

TEST_CASE("memory: an allocation is tagged, aligned, zeroed, writable and found by any byte") {
  Memory memory(64 * kMiB);
  for (const std::uint64_t bytes : {1ull, 255ull, 4096ull, 4097ull, 1000000ull, 5000000ull}) {
    const auto address = memory.allocate(bytes, AllocationKind::device);
    REQUIRE(address.has_value());
    CHECK((*address & kWindowMask) == kGlobalTag);
    CHECK(*address % 256 == 0);
    std::byte* host = host_pointer(*address);
    CHECK(host[0] == std::byte{0});
    CHECK(host[bytes - 1] == std::byte{0});
    std::memset(host, 0x5a, bytes);
    for (const std::uint64_t offset : {std::uint64_t{0}, bytes / 2, bytes - 1}) {
      bool writable = false;
      const AddressRange range = memory.find(*address + offset, &writable);
      CHECK(range.begin == *address);
      CHECK(range.end == *address + bytes);
      CHECK(writable);
    }
    CHECK(memory.find(*address + bytes).end == 0);
    CHECK(memory.find(*address - 1).end == 0);
    CHECK(memory.find(*address & ~kGlobalTag).end == 0);
  }
}

TEST_CASE("memory: an address range holds exactly its bytes, also at the ends of 64 bits") {
  const AddressRange range{0x1000, 0x1010};
  CHECK(range.contains(0x1000, 16));
  CHECK(range.contains(0x1010, 0));
  CHECK_FALSE(range.contains(0x1000, 17));
  CHECK_FALSE(range.contains(0xfff, 1));
  CHECK_FALSE(range.contains(0x100f, 2));
  CHECK_FALSE(range.contains(0x1008, ~std::uint64_t{0}));
}

TEST_CASE("memory: zero bytes and more than the capacity give nothing") {
  Memory memory(kMiB);
  CHECK_FALSE(memory.allocate(0, AllocationKind::device));
  CHECK_FALSE(memory.allocate(kMiB + 1, AllocationKind::device));
  CHECK_FALSE(memory.allocate(~std::uint64_t{0}, AllocationKind::device));
  CHECK(memory.used() == 0);
  const auto all = memory.allocate(kMiB, AllocationKind::device);
  REQUIRE(all);
  CHECK(memory.used() == kMiB);
  CHECK_FALSE(memory.allocate(1, AllocationKind::device));
  CHECK(memory.allocate(kMiB, AllocationKind::host));  // does not count
  CHECK(memory.free(*all));
  CHECK(memory.used() == 0);
  CHECK(memory.allocate(kMiB, AllocationKind::device));
}

TEST_CASE("memory: free takes only the start of a live allocation, once") {
  Memory memory(kMiB);
  const auto address = memory.allocate(1000, AllocationKind::device);
  REQUIRE(address);
  const std::uint64_t generation = memory.generation();
  CHECK_FALSE(memory.free(*address + 1));
  CHECK_FALSE(memory.free(*address + 256));
  CHECK_FALSE(memory.free(*address & ~kGlobalTag));
  CHECK_FALSE(memory.free(0));
  CHECK_FALSE(memory.free(~std::uint64_t{0}));
  CHECK_FALSE(memory.free(reinterpret_cast<std::uint64_t>(&memory)));
  CHECK(memory.generation() == generation);
  CHECK(memory.free(*address));
  CHECK(memory.generation() > generation);
  CHECK_FALSE(memory.free(*address));
  CHECK(memory.find(*address).end == 0);
}

TEST_CASE("memory: a freed address is not handed out again soon and is recognised") {
  Memory memory(64 * kMiB);
  const auto first = memory.allocate(4096, AllocationKind::device);
  REQUIRE(first);
  REQUIRE(memory.free(*first));
  for (int i = 0; i < 1000; ++i) {
    const auto next = memory.allocate(4096, AllocationKind::device);
    REQUIRE(next);
    CHECK(*next != *first);
    REQUIRE(memory.free(*next));
  }
  bool freed = false;
  const std::string text = memory.describe(*first + 8, 4, &freed);
  CHECK(freed);
  CHECK(text.find("inside an allocation of 4096 bytes at 0x") == 0);
  CHECK(text.find("that was freed") != std::string::npos);
}

TEST_CASE("memory: slots come round again, oldest first, when a size class is used up") {
  Memory memory(64 * kMiB);  // the class of 64 MiB blocks is the largest one and has few slots
  std::map<std::uint64_t, int> seen;
  for (int i = 0; i < 200; ++i) {
    const auto block = memory.allocate(40 * kMiB, AllocationKind::device);
    REQUIRE(block);
    CHECK(host_pointer(*block)[40 * kMiB - 1] == std::byte{0});
    host_pointer(*block)[40 * kMiB - 1] = std::byte{1};
    ++seen[*block];
    REQUIRE(memory.free(*block));
  }
  CHECK(seen.size() >= 4);
  for (const auto& [address, times] : seen) CHECK(times <= 200 / static_cast<int>(seen.size()) + 1);
}

TEST_CASE("memory: a hundred thousand small allocations live at once, apart from each other") {
  Memory memory(1024 * kMiB);
  constexpr std::size_t kCount = 100000;
  std::vector<std::uint64_t> blocks;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint64_t bytes = 1 + i * 37 % 4096;
    const auto block =
        memory.allocate(bytes, i % 2 == 0 ? AllocationKind::device : AllocationKind::heap);
    REQUIRE(block);
    blocks.push_back(*block);
    if (i % 100 == 0) std::memset(host_pointer(*block), 0x5a, bytes);
  }
  std::sort(blocks.begin(), blocks.end());
  for (std::size_t i = 1; i < kCount; ++i) REQUIRE(blocks[i] - blocks[i - 1] >= 8192);
  for (std::size_t i = 0; i < kCount; i += 999) {
    CHECK(memory.find(blocks[i]).begin == blocks[i]);
    CHECK(memory.find(blocks[i] + 4096).end == 0);
  }
  for (const std::uint64_t block : blocks) REQUIRE(memory.free(block));
  memory.reclaim();
  CHECK(memory.used() == 0);
}

TEST_CASE("memory: a small slot that comes round again reads as zero") {
  Memory memory(16 * kMiB);
  std::map<std::uint64_t, int> seen;
  bool again = false;
  for (int i = 0; i < 1000000 && !again; ++i) {
    const auto block = memory.allocate(300 << 10, AllocationKind::heap);
    REQUIRE(block);
    again = seen[*block]++ != 0;
    REQUIRE(host_pointer(*block)[0] == std::byte{0});
    host_pointer(*block)[0] = std::byte{1};
    REQUIRE(memory.free(*block));
  }
  CHECK(again);
}

TEST_CASE("memory: messages tell the nearest allocation and by how much it was missed") {
  Memory memory(64 * kMiB);
  CHECK(memory.describe(kGlobalTag | 0x7f0000000000, 4) ==
        "far from every allocation of the device");
  const auto block = memory.allocate(4096, AllocationKind::device);
  REQUIRE(block);
  bool freed = true;
  CHECK(memory.describe(*block + 4096, 4, &freed)
            .find("just past the end of the allocation of 4096 bytes at 0x") == 0);
  CHECK_FALSE(freed);
  CHECK(memory.describe(*block + 4112, 4)
            .find("16 bytes past the end of the allocation of 4096 bytes at 0x") == 0);
  CHECK(memory.describe(*block - 8, 4).find("8 bytes before the allocation of 4096 bytes") == 0);
  CHECK(memory.describe(*block + 4092, 8)
            .find("the last 4 of the 8 bytes lie past the end of the allocation of 4096") == 0);
  CHECK(memory.describe(*block + 4, 4).find("inside the allocation of 4096 bytes") == 0);
  CHECK(memory.describe(0, 4) == "a null pointer");
  CHECK(memory.describe(12, 4) == "a null pointer plus 12 bytes");
  CHECK(memory.describe(reinterpret_cast<std::uint64_t>(&memory), 4).find("a host address") == 0);
  const auto table = memory.allocate(64, AllocationKind::constant, "table");
  REQUIRE(table);
  CHECK(memory.describe(*table + 64, 4)
            .find("just past the end of the constant variable \"table\" of 64 bytes") == 0);
}

TEST_CASE("memory: constants are read-only, host and managed memory is untagged") {
  Memory memory(kMiB);
  const auto constant = memory.allocate(64, AllocationKind::constant, "c");
  REQUIRE(constant);
  bool writable = true;
  CHECK(memory.find(*constant, &writable).end == *constant + 64);
  CHECK_FALSE(writable);
  for (const AllocationKind kind : {AllocationKind::host, AllocationKind::managed}) {
    const auto block = memory.allocate(100, kind);
    REQUIRE(block);
    CHECK((*block & kWindowMask) == 0);
    CHECK(memory.find(*block + 99, &writable).begin == *block);
    CHECK(writable);
    CHECK(memory.find(*block | kGlobalTag).end == 0);
    REQUIRE(memory.lookup(*block + 99));
    CHECK(memory.lookup(*block + 99)->kind == kind);
    CHECK(memory.free(*block));
    CHECK_FALSE(memory.lookup(*block));
  }
}

TEST_CASE("memory: neighbours are searched after the own allocations") {
  Memory own(kMiB), host(kMiB), peer(kMiB);
  own.set_neighbours({&host, &peer});
  const auto there = peer.allocate(100, AllocationKind::device);
  const auto pinned = host.allocate(100, AllocationKind::host);
  REQUIRE(there);
  REQUIRE(pinned);
  CHECK(own.find(*there + 99).begin == *there);
  CHECK(own.find(*pinned).begin == *pinned);
  CHECK(own.search(*there).end == 0);
  CHECK(own.covers(*there) == false);
  CHECK(own.describe(*there + 101, 4).find("1 byte past the end of the allocation of 100") == 0);
  CHECK(own.describe(*pinned + 100, 4).find("just past the end of the host memory of 100") == 0);
  const std::uint64_t far = *pinned - (std::uint64_t{1} << 40);
  CHECK(own.describe(far, 4).find("a host address") == 0);
  const std::uint64_t generation = own.generation();
  own.set_neighbours({&host});
  CHECK(own.generation() > generation);
  CHECK(own.find(*there).end == 0);
}

TEST_CASE("memory: who still touches a freed heap block does not fault until reclaim") {
  Memory memory(64 * kMiB);
  for (const std::uint64_t bytes : {std::uint64_t{100}, 2 * kMiB}) {
    const auto block = memory.allocate(bytes, AllocationKind::heap);
    REQUIRE(block);
    host_pointer(*block)[5] = std::byte{7};
    CHECK(memory.free(*block));
    CHECK(memory.find(*block).end == 0);
    host_pointer(*block)[5] = std::byte{8};
    bool freed = false;
    memory.describe(*block, 1, &freed);
    CHECK(freed);
    memory.reclaim();
    CHECK_FALSE(memory.free(*block));
    CHECK(memory.used() == 0);
  }
}

TEST_CASE("memory: host memory of the caller can be adopted and released") {
  Memory memory(kMiB);
  std::vector<char> host(10000);
  const auto begin = reinterpret_cast<std::uint64_t>(host.data());
  CHECK(memory.find(begin).end == 0);
  CHECK_FALSE(memory.adopt_host(begin, 0));
  CHECK_FALSE(memory.adopt_host(~std::uint64_t{0} - 8, 100));
  CHECK_FALSE(memory.adopt_host(begin | kGlobalTag, 100));
  REQUIRE(memory.adopt_host(begin + 100, 5000));
  CHECK_FALSE(memory.adopt_host(begin + 100, 5000));
  CHECK_FALSE(memory.adopt_host(begin, 101));
  CHECK_FALSE(memory.adopt_host(begin + 5099, 10));
  CHECK(memory.adopt_host(begin, 100));
  CHECK(memory.find(begin + 5099).begin == begin + 100);
  CHECK(memory.find(begin + 5100).end == 0);
  CHECK_FALSE(memory.free(begin + 100));
  CHECK_FALSE(memory.release_host(begin + 101));
  CHECK(memory.release_host(begin + 100));
  CHECK_FALSE(memory.release_host(begin + 100));
  CHECK(memory.find(begin + 200).end == 0);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE("memory: host code faults on device pointers, in gaps and in freed memory") {
  Memory memory(kMiB);
  const auto block = memory.allocate(4096, AllocationKind::device);
  const auto host = memory.allocate(4096, AllocationKind::host);
  REQUIRE(block);
  REQUIRE(host);
  CHECK(signal_of_read(*host) == 0);
  CHECK(signal_of_read(*block) == SIGSEGV);
  CHECK(signal_of_read(*host + 4096) == SIGSEGV);
  CHECK(signal_of_read(*host - 1) == SIGSEGV);
  REQUIRE(memory.free(*host));
  CHECK(signal_of_read(*host) == SIGSEGV);
}
#endif

TEST_CASE("memory: thousands of blocks agree with a model") {
  Memory memory(256 * kMiB);
  std::map<std::uint64_t, std::uint64_t> model;
  std::mt19937_64 random(7);
  std::uint64_t used = 0;
  const auto pages = [](std::uint64_t bytes) { return (bytes + 4095) / 4096 * 4096; };
  for (int step = 0; step < 6000; ++step) {
    if (model.empty() || random() % 3 != 0) {
      const std::uint64_t bytes = 1 + random() % (random() % 8 == 0 ? 300000 : 9000);
      const auto address = memory.allocate(bytes, AllocationKind::device);
      REQUIRE(address.has_value() == (used + pages(bytes) <= memory.capacity()));
      if (!address) continue;
      const auto next = model.lower_bound(*address);
      if (next != model.end()) REQUIRE(*address + bytes + 4096 <= next->first);
      if (next != model.begin())
        REQUIRE(std::prev(next)->first + std::prev(next)->second + 4096 <= *address);
      model.emplace(*address, bytes);
      used += pages(bytes);
    } else {
      auto victim = model.lower_bound(kGlobalTag | (random() % (kGlobalTag >> 5)));
      if (victim == model.end()) victim = model.begin();
      REQUIRE(memory.free(victim->first));
      used -= pages(victim->second);
      model.erase(victim);
    }
    REQUIRE(memory.used() == used);
  }
  for (const auto& [address, bytes] : model) {
    REQUIRE(memory.find(address + bytes - 1).begin == address);
    REQUIRE(memory.find(address + bytes).end == 0);
  }
}

TEST_CASE("memory: readers need no lock while other threads allocate and free") {
  Memory memory(64 * kMiB);
  const auto fixed = memory.allocate(1000, AllocationKind::device);
  REQUIRE(fixed);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    while (!stop) {
      if (memory.find(*fixed + 500).begin != *fixed) ++wrong;
    }
  });
  std::vector<std::thread> writers;
  for (int t = 0; t < 3; ++t) {
    writers.emplace_back([&] {
      for (int i = 0; i < 300; ++i) {
        const auto block = memory.allocate(5000, AllocationKind::device);
        if (!block || memory.find(*block).end != *block + 5000 || !memory.free(*block)) ++wrong;
      }
    });
  }
  for (std::thread& writer : writers) writer.join();
  stop = true;
  reader.join();
  CHECK(wrong == 0);
  CHECK(memory.used() == 4096);
}
