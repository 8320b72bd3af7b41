// Numbers in the plans of kernels: a table gives them for a device, a rule everywhere else.
#pragma once

#include "core/device.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace kernwright::kernels {

/// A choice; launch_choices.def has a row for each.
enum class LaunchChoice : std::uint8_t {
#define KW_CHOICE(id, ...) id,
#include "kernels_src/launch_choices.def"
#undef KW_CHOICE
};

/// The meaning of `extent`.
enum class ChoiceMeasure : std::uint8_t { row, whole };

struct LaunchChoiceInfo {
  std::string_view family, name;  ///< "softmax", "values"
  ChoiceMeasure measure;
  std::span<const int> candidates;  ///< rising
  std::string_view meaning;
};
/// All of them, in the order of LaunchChoice.
std::span<const LaunchChoiceInfo> launch_choices() noexcept;
/// Shapes of one class have one number: "short/4" is rows of up to 1024 elements of 4 bytes. Rows
/// are "middle" up to 8192 elements, wholes "short" up to 2^20 and "middle" up to 2^24.
std::string shape_class(ChoiceMeasure measure, std::int64_t extent, std::size_t element);

/// The number for a shape: that of the table in use, where it names the device and the class, else
/// `rule`. It is decided once for each device and class; later calls load it. Thread-safe.
int choose(LaunchChoice choice, const Device& device, std::int64_t extent, std::size_t element,
           int rule) noexcept;

/// Uses the "devices" of that text of a table from now on, before those of the library, see
/// use_launch_table() (products/kernel_choices.h). Nothing goes back to the file. Throws
/// InvalidArgument for any other text, naming the place.
void use_device_table(std::optional<std::string_view> json);
/// Counts the tables used so far. Thread-safe.
std::uint64_t launch_table_changes() noexcept;

/// A candidate of a choice, for all shapes and devices.
struct LaunchCandidate {
  LaunchChoice choice;
  int value;
};
/// The choices of launches as the table is in a moment, but for `candidates`, which are measured.
/// Throws InvalidArgument for a number that is no candidate.
class PinnedLaunches;
std::shared_ptr<PinnedLaunches> pin_launches(std::span<const LaunchCandidate> candidates = {});
/// From here on launches of this thread are chosen by `pinned`, and by the table in use if that is
/// null. The caller keeps `pinned`.
void set_pinned_launches(PinnedLaunches* pinned) noexcept;

/// The file that is read: see use_launch_table(). Empty where there is no folder for it, or where
/// the variable says "off": then the rules alone decide.
std::filesystem::path launch_table_path();

}  // namespace kernwright::kernels
