# kernwright_embed(<target> <file>... [NAMESPACE <name>] [PREFIX <folder>] [WITHOUT_COMMENTS]): each
# file of kernel text becomes a header for C++ at build time, made anew when the file changes:
# blur/blur.cu -> "<folder>/blur/blur.cu.h" with the string `blur_cu` in that namespace (default:
# kernels). WITHOUT_COMMENTS leaves out comments of `//` and the indentation: smaller programs, the
# same numbers of lines. Strings of such texts have no " //", and none goes over a line.
#
# The same file is the script that makes one header:
# cmake -DINPUT= -DOUTPUT= -DNAME= -DNAMESPACE= -DWITHOUT_COMMENTS= -P kernwright_embed.cmake
if(CMAKE_SCRIPT_MODE_FILE STREQUAL CMAKE_CURRENT_LIST_FILE)
  file(READ "${INPUT}" text)
  string(FIND "${text}" ")__source__" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${INPUT} contains the mark that ends the embedded text")
  endif()
  if(WITHOUT_COMMENTS)
    string(REGEX REPLACE "(^|[ \t\n])[ \t]*//[^\n]*" "\\1" text "${text}")
    string(REGEX REPLACE "[ \t]*\n[ \t]*" "\n" text "${text}")
  endif()
  get_filename_component(file "${INPUT}" NAME)
  file(WRITE "${OUTPUT}" "// The text of ${file}, made by kernwright_embed().
#pragma once

namespace ${NAMESPACE} {

inline constexpr char ${NAME}[] = R\"__source__(${text})__source__\";

}  // namespace ${NAMESPACE}
")
  return()
endif()

set(KERNWRIGHT_EMBED_SCRIPT "${CMAKE_CURRENT_LIST_FILE}")

function(kernwright_embed target)
  cmake_parse_arguments(ARG "WITHOUT_COMMENTS" "NAMESPACE;PREFIX" "" ${ARGN})
  if(NOT ARG_NAMESPACE)
    set(ARG_NAMESPACE kernels)
  endif()
  if(NOT ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "kernwright_embed(${target}): no file is named")
  endif()
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}_embedded")
  foreach(file IN LISTS ARG_UNPARSED_ARGUMENTS)
    get_filename_component(input "${file}" ABSOLUTE)
    get_filename_component(name "${file}" NAME)
    if(IS_ABSOLUTE "${file}" OR file MATCHES "^\\.\\.")
      set(file "${name}")
    endif()
    string(MAKE_C_IDENTIFIER "${name}" name)
    set(output "${folder}/${ARG_PREFIX}/${file}.h")
    add_custom_command(OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DINPUT=${input}" "-DOUTPUT=${output}" "-DNAME=${name}"
              "-DNAMESPACE=${ARG_NAMESPACE}" "-DWITHOUT_COMMENTS=${ARG_WITHOUT_COMMENTS}"
              -P "${KERNWRIGHT_EMBED_SCRIPT}"
      DEPENDS "${input}" "${KERNWRIGHT_EMBED_SCRIPT}"
      COMMENT "Embedding ${file}" VERBATIM)
    target_sources(${target} PRIVATE "${output}")
  endforeach()
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()
