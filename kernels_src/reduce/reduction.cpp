// The table of reductions and their rules of types.
#include "kernels_src/reduce/reduction.h"

#include "base/errors.h"
#include "base/format.h"
#include "kernels_src/family.h"

#include <algorithm>
#include <array>

namespace kernwright::kernels {

namespace {

struct ReductionRow {
  std::string_view name;
  const char* reducer;
};

// In the order of Reduction.
constexpr std::array kReductionRows = {
    ReductionRow{"sum", "Total"},
    ReductionRow{"prod", "Product"},
    ReductionRow{"mean", "Average"},
    ReductionRow{"max", "Largest"},
    ReductionRow{"min", "Smallest"},
    ReductionRow{"argmax", "LargestPlace"},
    ReductionRow{"argmin", "SmallestPlace"},
    ReductionRow{"any", "Largest"},
    ReductionRow{"all", "Smallest"},
    ReductionRow{"count_nonzero", "NonzeroCount"},
    ReductionRow{"var", "Variance"},
    ReductionRow{"std", "Deviation"},
    ReductionRow{"norm_zero", "NormZero"},
    ReductionRow{"norm_one", "NormOne"},
    ReductionRow{"norm_two", "NormTwo"},
    ReductionRow{"norm_any", "NormAny"},
    ReductionRow{"norm_largest", "NormLargest"},
    ReductionRow{"norm_smallest", "NormSmallest"},
    ReductionRow{"logsumexp", "LogSumExp"},
    ReductionRow{"nansum", "NumberTotal"},
    ReductionRow{"nanprod", "NumberProduct"},
    ReductionRow{"nanmean", "NumberAverage"},
    ReductionRow{"nanmax", "LargestNumber"},
    ReductionRow{"nanmin", "SmallestNumber"},
    ReductionRow{"nanvar", "NumberVariance"},
    ReductionRow{"nanstd", "NumberDeviation"},
};

const ReductionRow& reduction_row(Reduction op) {
  return kReductionRows[static_cast<std::size_t>(op)];
}

bool is_inexact_type(ScalarType type) { return is_floating(type) || is_complex(type); }

ScalarType inexact_type(ScalarType type) {
  return is_inexact_type(type) ? type : ScalarType::float64;
}

[[noreturn]] void refuse_reduction(Reduction op, ScalarType type, const char* why) {
  throw InvalidArgument(format("{}() of {}: {}", reduction_name(op), scalar_name(type), why));
}

void require_reduction_order(Reduction op, ScalarType in) {
  if (is_complex(in)) refuse_reduction(op, in, "complex numbers have no order");
}

/// The reduction that does not pass over NaN.
Reduction plain_reduction(Reduction op) {
  constexpr std::array kPlain = {Reduction::sum, Reduction::prod, Reduction::mean, Reduction::max,
                                 Reduction::min, Reduction::var,  Reduction::std};
  if (op < Reduction::nansum) return op;
  return kPlain[static_cast<std::size_t>(op) - static_cast<std::size_t>(Reduction::nansum)];
}

/// sum and prod take a dtype; for bools the reductions are any and all.
ReductionTypes reduction_sum_types(Reduction op, ScalarType in, std::optional<ScalarType> wanted) {
  const ScalarType type = wanted.value_or(sum_type(in));
  if (type != ScalarType::boolean) return {op, in, type, type};
  return {op == Reduction::sum ? Reduction::any : Reduction::all, in, type, type};
}

/// `op` passes over nothing; `asked` stands in messages.
ReductionTypes plain_types(Reduction op, Reduction asked, ScalarType in,
                           std::optional<ScalarType> wanted) {
  switch (op) {
    case Reduction::sum:
    case Reduction::prod:
      return reduction_sum_types(op, in, wanted);
    case Reduction::mean: {
      const ScalarType type = wanted.value_or(inexact_type(in));
      if (!is_inexact_type(type))
        refuse_reduction(asked, type, "a mean is a floating or complex number");
      return {op, in, type, type};
    }
    case Reduction::max:
    case Reduction::min:
      require_reduction_order(asked, in);
      return {op, in, in, in};
    case Reduction::argmax:
    case Reduction::argmin:
      require_reduction_order(asked, in);
      return {op, in, in, ScalarType::int64};
    case Reduction::any:
    case Reduction::all:
      return {op, in, ScalarType::boolean, ScalarType::boolean};
    case Reduction::count_nonzero:
      return {op, in, in, ScalarType::int64};
    case Reduction::logsumexp:
      require_reduction_order(asked, in);
      return {op, in, inexact_type(in), inexact_type(in)};
    default: {
      const ScalarType type = wanted.value_or(inexact_type(in));
      if (!is_inexact_type(type)) refuse_reduction(asked, type, "a variance is a floating number");
      return {op, in, type, real_part_type(type)};
    }
  }
}

std::size_t reduction_accumulator_size(ScalarType type) {
  return std::max<std::size_t>(is_inexact_type(type) ? 4 : 8, scalar_size(type));
}

}  // namespace

std::string_view reduction_name(Reduction op) noexcept { return reduction_row(op).name; }

std::optional<Reduction> reduction_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kReductionRows.size(); ++i) {
    if (kReductionRows[i].name == name) return static_cast<Reduction>(i);
  }
  return std::nullopt;
}

ScalarType sum_type(ScalarType in) noexcept {
  if (is_inexact_type(in)) return in;
  return is_unsigned_integer(in) ? ScalarType::uint64 : ScalarType::int64;
}

ReductionTypes reduction_types(Reduction op, ScalarType in, std::optional<ScalarType> wanted) {
  const Reduction plain = plain_reduction(op);
  const bool passes_nan = op != plain && is_inexact_type(in);
  if (passes_nan && wanted == ScalarType::boolean) {
    refuse_reduction(op, in, "its dtype cannot be bool");
  }
  ReductionTypes types = plain_types(plain, op, in, wanted);
  if (passes_nan) types.op = op;
  return types;
}

std::string reducer_expression(const ReductionTypes& types, bool wide) {
  const char* const second = !is_place(types.op) ? device_type(types.as)
                             : wide              ? "unsigned long long"
                                                 : "unsigned int";
  return format("{}<{}, {}>", reduction_row(types.op).reducer, device_type(types.in), second);
}

std::size_t state_size(const ReductionTypes& types, bool wide) noexcept {
  const std::size_t word = std::max<std::size_t>(4, scalar_size(types.as));
  switch (types.op) {
    case Reduction::sum:
    case Reduction::prod:
    case Reduction::mean:
    case Reduction::nansum:
    case Reduction::nanprod:
      return reduction_accumulator_size(types.as);
    case Reduction::nanmean:
      return is_complex(types.as) ? 32 : 16;
    case Reduction::argmax:
    case Reduction::argmin:
      return 2 * std::max<std::size_t>(word, wide ? 8 : 4);
    case Reduction::count_nonzero:
      return 8;
    case Reduction::var:
    case Reduction::std:
    case Reduction::nanvar:
    case Reduction::nanstd:
      return is_complex(types.as) ? 32 : scalar_size(types.as) == 2 ? 16 : 24;
    case Reduction::logsumexp:
      return 2 * reduction_accumulator_size(types.as);
    case Reduction::max:
    case Reduction::min:
    case Reduction::any:
    case Reduction::all:
    case Reduction::nanmax:
    case Reduction::nanmin:
      return word;
    default:
      return reduction_accumulator_size(types.out);
  }
}

}  // namespace kernwright::kernels
