// The place of a kernel's text: a file, and the line of its beginning there.
#pragma once

#include <string>

namespace kernwright {

/// For a kernel string inside a .py file: this file and the line of the string's first line. Object
/// code counts lines from the start of the text; with this a message names the line of the file.
struct SourceOrigin {
  std::string file;    ///< as the object code's line table names it
  int first_line = 1;  ///< counted from 1
};

}  // namespace kernwright
