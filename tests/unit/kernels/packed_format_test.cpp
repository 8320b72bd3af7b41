// The columns of the table of packed formats.
#include "kernels_src/packed/packed_format.h"

#include "base/errors.h"
#include "kernels_src/formats/formats.h"

#include <doctest/doctest.h>

using namespace kernwright;
using namespace kernwright::kernels;

namespace {

/// Bytes of the units for 256 numbers.
int unit_bytes(const PackedUnits& units) {
  return units.bytes == 0 ? 0 : 256 / units.step * units.bytes;
}

}  // namespace

TEST_CASE("packed format: a name finds its row") {
  for (std::size_t i = 0; i < kPackedTraits.size(); ++i) {
    CHECK(packed_format(kPackedTraits[i].name) == static_cast<PackedFormat>(i));
  }
  CHECK(packed_traits(PackedFormat::q4_k).name == "q4_k");
  CHECK_THROWS_WITH_AS(packed_format("q4_K"), doctest::Contains("int4, nf4, fp4, q4_0"),
                       InvalidArgument);
}

TEST_CASE("packed format: parts of a GGUF format hold the bytes of its blocks") {
  std::size_t count = 0;
  for (const PackedTraits& row : kPackedTraits) {
    if (row.kind != PackedKind::gguf) continue;
    ++count;
    CAPTURE(row.name);
    const GgufFormat& gguf = gguf_format(row.name);
    CHECK(row.block == gguf.values);
    const int codes = 32 * (row.bits + row.upper_bits);
    const int all = codes + unit_bytes(row.units) + unit_bytes(row.super_units);
    CHECK(all == 256 / gguf.values * gguf.bytes);
  }
  CHECK(count == kGgufFormats.size());
  for (const GgufFormat& gguf : kGgufFormats) {
    CAPTURE(gguf.name);
    CHECK_NOTHROW(packed_format(gguf.name));
  }
}

TEST_CASE("packed format: columns of a row agree") {
  for (const PackedTraits& row : kPackedTraits) {
    CAPTURE(row.name);
    CHECK((row.bits == 2 || row.bits == 4 || row.bits == 8));
    CHECK(row.run == (row.has_short_groups() ? 4 : 8));
    CHECK(std::string_view(row.codes).find("{}") != std::string_view::npos);
    CHECK((*row.scales == '\0') == row.has_group_sizes());
    CHECK((row.units.bytes == 0) == (row.has_group_sizes() || row.kind == PackedKind::tiles));
    CHECK((*row.source == '\0') == (row.kind == PackedKind::words));
    CHECK_FALSE((row.has_table && row.has_offset));
    CHECK_FALSE((row.is_exact && row.has_offset));
  }
}
