// Edit distance over short names.
#include "base/nearest_name.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/format.h"

namespace kernwright {
namespace {

constexpr std::size_t kMaxCompared = 256;
constexpr std::size_t kMaxListed = 32;

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view wanted, std::span<const std::string> names) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(wanted.size() / 3, 1) + 1;
  if (wanted.size() > kMaxCompared) return best;
  for (const std::string& name : names) {
    if (name.size() > kMaxCompared || name == wanted) continue;
    const std::size_t distance = edit_distance(wanted, name);
    // A name of one or two letters would have nothing in common with the written one.
    if (distance < best_distance && distance * 2 < std::max(name.size(), wanted.size())) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

std::string describe_names(std::string_view wanted, std::span<const std::string> names) {
  if (names.empty()) return ": there is none";
  std::string list;
  for (std::size_t i = 0; i < names.size() && i < kMaxListed; ++i) {
    list += (i == 0 ? "" : ", ") + names[i];
  }
  if (names.size() > kMaxListed) list += format(" and {} more", names.size() - kMaxListed);
  const std::string nearest = nearest_name(wanted, names);
  if (nearest.empty()) return "; there is: " + list;
  return format("; did you mean {}? There is: {}", nearest, list);
}

}  // namespace kernwright
