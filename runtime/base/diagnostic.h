// One message of a compiler about one place in a source text.
#pragma once

#include "base/byte_reader.h"

#include <string>

namespace kernwright {

enum class Severity { note, remark, warning, error };

/// "note", "remark", "warning" or "error".
const char* severity_name(Severity severity) noexcept;

/// A compiler message. `line` and `column` count from 1; 0 means the compiler gave none.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string message;
  std::string file;
  int line = 0;
  int column = 0;
  std::string caret;  ///< the source line and the caret line below it, empty when unknown
  std::string hint;   ///< what usually helps, empty when nothing is known

  /// "file:line:column: severity: message" and, where known, caret and hint on further lines. Of a
  /// long line the part around the caret.
  std::string to_string() const;
};

/// As fields of a file or message. The read throws Error for bytes that the write did not make.
void write(ByteWriter& out, const Diagnostic& diagnostic);
Diagnostic read_diagnostic(ByteReader& in);

}  // namespace kernwright
