// An estimate of a configuration's compile time, learnt from earlier compiles.
#pragma once

#include "tune/configuration_set.h"
#include "tune/space.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace kernwright {

struct CompileDeadlines {
  double factor = 8;    ///< times the estimate
  double floor_s = 10;  ///< no compile is given up sooner
  double first_s = 60;  ///< before enough was learnt
};

/// An additive model of the logarithm: each value of each parameter makes a compile longer or
/// shorter by a factor. Not thread-safe.
class CompileEstimate {
 public:
  /// `space` must outlive it.
  explicit CompileEstimate(const Space& space);

  void learn(const Choices& choices, double seconds);
  /// Seconds; nothing before a first compile.
  std::optional<double> predict(const Choices& choices) const;
  /// Typical seconds of a compile; 0 before the first one.
  double typical() const;
  /// Seconds for this compile before it is given up.
  double deadline(const Choices& choices, const CompileDeadlines& deadlines) const;

 private:
  struct Sample {
    Choices choices;
    double log_seconds;
  };
  double sum(const Choices& choices) const;
  void fit();

  std::vector<std::vector<double>> effects_;  ///< of each parameter, by choice
  double mean_ = 0;
  double residual_ = 0;  ///< largest above the model so far, as a logarithm
  std::vector<Sample> samples_;
  std::size_t fitted_ = 0;
};

}  // namespace kernwright
