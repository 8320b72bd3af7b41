// The conditions of a tuning result: the code, the device, the toolchain, the problem.
#pragma once

#include "tune/expression.h"
#include "tune/space.h"
#include "tune/store/row.h"

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kernwright {

class Device;
class Program;

/// GPUs with common results.
struct DeviceClass {
  std::string name;
  int major = 0, minor = 0;
  int sm_count = 0;

  static DeviceClass from(const Device& device);
  bool operator==(const DeviceClass&) const = default;
};

/// The members of a result row for look-up. In a query an empty text, and a driver or SM count of
/// 0, stand for any.
struct StoreKey {
  std::string kernel;  ///< as the user named it, template arguments included
  std::string source;  ///< source_hash()
  std::string text;    ///< text_hash(): stands for `source` where no header file is found
  std::string space;   ///< space_hash()
  DeviceClass device;
  std::string nvrtc;      ///< "13.0"
  int driver = 0;         ///< 13000 for CUDA 13.0
  std::string policy;     ///< how it was measured: "cold", "warm", "rotate", "graph", "counts"
  std::string objective;  ///< "time", "energy", ...
  ProblemValues problem;  ///< sizes and other values of the problem, by name

  /// The members as those of a row, with "bucket" beside "problem".
  Row to_row() const;
  /// The key in a session or result row. Throws InvalidArgument naming a member of a wrong type.
  static StoreKey from_row(const Row& row);
};

/// The bucket of a problem value: floor(log2) of a positive integer ("12" for 4096 and 5000), "0-"
/// for 0, "-" and the bucket of the magnitude for a negative one; the value itself for others.
std::string problem_bucket(const Value& value);

/// Hexadecimal hash of everything with influence on a program's code: its text, options, headers in
/// memory and on the disk. The machine, the compiler and the defines among `parameters` do not
/// count. For object code, the hash of the code. Empty if only the preprocessor knows a header's
/// name: then the code may be another one. Reads the headers; throws as
/// include_closure().
std::string source_hash(const Program& program, std::span<const std::string> parameters);

/// The same without header files on the disk: equal to source_hash() if there are none.
std::string text_hash(const Program& program, std::span<const std::string> parameters);

/// Hexadecimal hash of parameters, their values in order, restrictions and listed configurations;
/// of a Predicate its label and parameters.
std::string space_hash(const Space& space);

/// A value of a row: bool, integer, number or text. Throws InvalidArgument for another.
Value parse_value(const Row& json);
Row value_json(const Value& value);

}  // namespace kernwright
