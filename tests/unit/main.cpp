// Entry point of every unit test executable.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // Tests count compiles, and must not meet the user's own cache. Suites that only run kernels may
  // find them compiled by an earlier run, in a folder of the tests.
  const bool is_kept = std::getenv("KERNWRIGHT_TEST_KEPT_CACHE") != nullptr &&
                       std::getenv("KERNWRIGHT_CACHE_DIR") != nullptr;
  setenv("KERNWRIGHT_CACHE", is_kept ? "disk" : "memory", 1);
  return doctest::Context(argc, argv).run();
}
