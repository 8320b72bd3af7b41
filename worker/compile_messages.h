// The requests and answers of compiles in workers, as fields of a message.
#pragma once

#include "base/byte_reader.h"
#include "jit/compile/compile_service.h"
#include "jit/compile/compile_trace.h"

namespace kernwright {

// Each read throws Error for bytes that its write did not make.

void write(ByteWriter& out, const NvrtcSearch& search);
NvrtcSearch read_search(ByteReader& in);

/// Without the candidates.
void write(ByteWriter& out, const NvrtcFacts& nvrtc);
NvrtcFacts read_facts(ByteReader& in);

void write(ByteWriter& out, const Source& source);
Source read_source(ByteReader& in);

/// All but the timeout, which is the caller's.
void write(ByteWriter& out, const ProgramOptions& options);
ProgramOptions read_options(ByteReader& in);

/// Without what follows from the source.
void write(ByteWriter& out, const CompileJob& job);
CompileJob read_job(ByteReader& in);

void write(ByteWriter& out, const CompileResult& result);
CompileResult read_result(ByteReader& in);

}  // namespace kernwright
