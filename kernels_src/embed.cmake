# kernwright_embed(<target>): each .cu and .cuh of this folder becomes a generated header for C++:
# copy/copy.cu -> "kernels_src/copy/copy.cu.h" with `kernels::text::copy_cu`. A header is made anew
# when its input changes.
#
# The same file is the script that makes one header: cmake -DINPUT= -DOUTPUT= -DNAME= -P embed.cmake
if(CMAKE_SCRIPT_MODE_FILE)
  file(READ "${INPUT}" text)
  string(FIND "${text}" ")__source__" clash)
  if(NOT clash EQUAL -1)
    message(FATAL_ERROR "${INPUT} contains the mark that ends the embedded text")
  endif()
  get_filename_component(stem "${INPUT}" NAME)
  file(WRITE "${OUTPUT}" "// The text of ${stem}, made by embed.cmake.
#pragma once

namespace kernwright::kernels::text {

inline constexpr char ${NAME}[] = R\"__source__(${text})__source__\";

}  // namespace kernwright::kernels::text
")
  return()
endif()

function(kernwright_embed target)
  file(GLOB_RECURSE inputs CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}"
    "${CMAKE_CURRENT_SOURCE_DIR}/*.cu" "${CMAKE_CURRENT_SOURCE_DIR}/*.cuh")
  set(script "${CMAKE_CURRENT_SOURCE_DIR}/embed.cmake")
  set(folder "${CMAKE_CURRENT_BINARY_DIR}/embedded")
  foreach(input IN LISTS inputs)
    set(output "${folder}/kernels_src/${input}.h")
    get_filename_component(file "${input}" NAME)
    string(REPLACE "." "_" name "${file}")
    add_custom_command(OUTPUT "${output}"
      COMMAND "${CMAKE_COMMAND}" "-DINPUT=${CMAKE_CURRENT_SOURCE_DIR}/${input}" "-DOUTPUT=${output}"
              "-DNAME=${name}" -P "${script}"
      DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/${input}" "${script}"
      COMMENT "Embedding ${input}" VERBATIM)
    target_sources(${target} PRIVATE "${output}")
  endforeach()
  target_include_directories(${target} PRIVATE "${folder}")
endfunction()
