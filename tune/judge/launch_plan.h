// The launches that check a kernel, drawn from the seed of its judgement.
#pragma once

#include "tune/judge/judged_kernel.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace kernwright {

/// A launch with results to be compared, of new inputs of the case `number`.
struct PlannedLaunch {
  int number = 0;
  std::uint64_t input_seed = 0;
  LaunchSetting setting;
};

/// The launch of a case with the judgement's own inputs. Neighbouring cases have other contents in
/// their outputs.
LaunchSetting first_setting(std::uint64_t seed, int number);

inline constexpr std::size_t kLeastFurtherLaunches = 8;
/// 8 to 15 launches after those of all cases, in the same module: in turn of the small case, of the
/// timed one and of any of `others`. Every kind of contents comes, and some launches have an order
/// of warps and blocks of their own. Some of the timed case come right behind one whose seed
/// differs in the lowest bit: kw.Inputs then draws many elements alike, so that kernels are wrong
/// which know their inputs by some elements.
std::vector<PlannedLaunch> further_launches(std::uint64_t seed, int small, int timed,
                                            const std::vector<int>& others);

/// Some launches that are each the first of a module, as timed ones are: of the timed case and of
/// others, with several contents and in orders of their own.
std::vector<PlannedLaunch> first_launches(std::uint64_t seed, int timed,
                                          const std::vector<int>& others);

/// Launches of cases that cost little, for other sizes. Each case gets seeds that differ by 2, over
/// which kw.Inputs spreads its sizes and kinds of values evenly.
std::vector<PlannedLaunch> sized_launches(std::uint64_t seed, const std::vector<int>& cheap);

/// How often a case is launched without a comparison, before a launch with one: for kernels that
/// are right only some hundred times.
struct Repetition {
  std::uint64_t least = 0;
  double doublings = 0;  ///< up to `least` * 2^doublings, and each doubling is equally likely
};
inline constexpr Repetition kSmallRepetition{32, 4}, kTimedRepetition{8, 3};

/// The number of such launches: drawn by the seed, fewer if they would cost more than 4 million
/// instructions and transactions (`cost` each; nothing: not known), but never below the least. So a
/// text cannot buy fewer launches by costly ones.
std::uint64_t repetitions(const Repetition& repetition, std::uint64_t seed,
                          std::optional<double> cost);

}  // namespace kernwright
