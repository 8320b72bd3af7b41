// Writes docs/ptx_coverage.md: write_isa_page <path>.
#include "unit/sim/ptx/isa_page.h"

#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  std::ofstream file(argv[1], std::ios::binary);
  file << kernwright::sim::ptx::isa_page();
  return file.good() ? 0 : 1;
}
