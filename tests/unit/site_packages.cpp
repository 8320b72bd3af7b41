// Reads the environment when the tests run, so that a build may be tested with other packages.
#include "unit/site_packages.h"

#include <cstdlib>

namespace kernwright::testing {

std::string site_packages() {
  const char* given = std::getenv("KERNWRIGHT_TEST_SITE_PACKAGES");
  return given != nullptr && *given != '\0' ? given : TEST_SITE_PACKAGES;
}

}  // namespace kernwright::testing
