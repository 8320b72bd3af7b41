// Entry point of every unit test executable.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

#include <cstdlib>

int main(int argc, char** argv) {
  // Tests count compiles, and must not meet the user's own cache.
  setenv("KERNWRIGHT_CACHE", "memory", 1);
  return doctest::Context(argc, argv).run();
}
