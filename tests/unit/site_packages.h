// Where the Python packages lie that bring NVRTC and CUDA's headers to the tests.
#pragma once

#include <string>

namespace kernwright::testing {

/// KERNWRIGHT_TEST_SITE_PACKAGES, else the site-packages of the Python that the build was
/// configured with.
std::string site_packages();

}  // namespace kernwright::testing
