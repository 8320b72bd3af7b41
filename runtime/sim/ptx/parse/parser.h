// PTX text to a checked Module.
#pragma once

#include "sim/ptx/ast.h"

#include <memory>
#include <stdexcept>
#include <string>

namespace kernwright::sim::ptx {

/// Malformed PTX, or an instruction without a matching row in the table (`opcode` is set then).
class PtxError : public std::runtime_error {
 public:
  PtxError(const std::string& message, int at_ptx_line, SourceLine at_source = {},
           std::string unknown_opcode = {}, std::string source_file = {})
      : std::runtime_error(message),
        ptx_line(at_ptx_line),
        source(at_source),
        opcode(std::move(unknown_opcode)),
        file(std::move(source_file)) {}
  int ptx_line;
  SourceLine source;
  std::string opcode;
  std::string file;  ///< name of source.file
};

/// Parses and verifies: every register, label and symbol resolved, every instruction matched to its
/// IsaRow with operand kinds and types checked, every limit enforced. Throws PtxError, never
/// crashes.
std::unique_ptr<Module> parse(std::string text);

}  // namespace kernwright::sim::ptx
