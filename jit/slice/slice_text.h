// Source texts whose kernels run as parts of a larger grid.
#pragma once

#include "jit/source/program_options.h"
#include "jit/source/source.h"

#include <string>

namespace kernwright {

/// How a kernel learns the index of its block in the whole grid.
struct SliceForm {
  /// false: by its first two parameters, the first block of the slice and the extents of the whole
  /// grid, three unsigned numbers each. true: by the next number of a counter, until a word tells
  /// blocks to stop; two more point to 32-bit words: the order to stop (not 0), and the next
  /// block. A text with the name KERNWRIGHT_YIELD_WORDS asks in the loop over tiles instead.
  bool yields = false;
  /// false: kernels see `blockIdx` and `gridDim` as objects of their body. true: as objects in
  /// shared memory, written in front of a barrier, so lambdas that capture nothing, local classes
  /// and functions that are not inlined see them too.
  bool in_shared = false;
};

/// A text, and the options to compile it with.
struct SlicedText {
  Source source;
  ProgramOptions options;
  bool asks_in_loop = false;  ///< blocks take tiles by the words
};

/// Adds the form's parameters in front of those of every __global__ function, and redirects
/// `blockIdx` and `gridDim` everywhere, included headers too. Lines keep their numbers. Kernels in
/// included files of folders stay as they are; their names and line are looked for in the text,
/// its macros and the headers in `options`. Throws NotSliceable for a text that reads the index or
/// the grid in another way: by assembler, or as clusters of the grid.
SlicedText slice_text(const Source& source, const ProgramOptions& options, SliceForm form);

}  // namespace kernwright
