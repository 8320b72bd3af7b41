# kernwright_module(<name> [DEPENDS module...] [LIBRARIES library...] [OPTIONS flag...]
# [FAST regex...] [EXCLUDE regex...] [LARGE_BATCHES]): one static library per module, from *.cpp of
# its folder and of all folders below. A module sees only the modules that it lists. Sources are
# compiled for size, with LARGE_BATCHES twice as many at once. Sources on hot paths match FAST and
# form the target kernwright_<name>_fast. FAST and EXCLUDE match paths that begin in the module's
# folder ("ops/dispatch.cpp").
function(kernwright_module name)
  cmake_parse_arguments(ARG "LARGE_BATCHES" "" "DEPENDS;LIBRARIES;OPTIONS;FAST;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" "*.cpp")
  foreach(pattern IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  set(fast_sources "")
  foreach(pattern IN LISTS ARG_FAST)
    set(matching ${sources})
    list(FILTER matching INCLUDE REGEX "${pattern}")
    if(NOT matching)
      message(FATAL_ERROR "module ${name}: no source matches FAST \"${pattern}\"")
    endif()
    list(FILTER sources EXCLUDE REGEX "${pattern}")
    list(APPEND fast_sources ${matching})
  endforeach()
  list(TRANSFORM ARG_DEPENDS PREPEND kernwright::)

  add_library(kernwright_${name} STATIC ${sources})
  add_library(kernwright::${name} ALIAS kernwright_${name})
  target_include_directories(kernwright_${name} PUBLIC
    "${PROJECT_SOURCE_DIR}/runtime" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(kernwright_${name} PUBLIC ${ARG_DEPENDS} ${ARG_LIBRARIES})
  kernwright_module_target(${name} "" OPTIONS ${kernwright_small_flags} ${ARG_OPTIONS})
  if(ARG_LARGE_BATCHES)
    set_target_properties(kernwright_${name} PROPERTIES
      UNITY_BUILD_BATCH_SIZE ${kernwright_large_batch})
  endif()
  if(fast_sources)
    add_library(kernwright_${name}_fast OBJECT ${fast_sources})
    target_include_directories(kernwright_${name}_fast PRIVATE
      "${PROJECT_SOURCE_DIR}/runtime" "${PROJECT_SOURCE_DIR}")
    target_link_libraries(kernwright_${name}_fast PRIVATE ${ARG_DEPENDS} ${ARG_LIBRARIES})
    kernwright_module_target(${name} _fast OPTIONS ${ARG_OPTIONS})
    target_sources(kernwright_${name} PRIVATE $<TARGET_OBJECTS:kernwright_${name}_fast>)
  endif()
endfunction()

# kernwright_module_target(<module> <suffix> [OPTIONS flag...]): flags and precompiled headers of a
# target of a module. NOTE: gcc 12 optimises functions at the level of the precompiled headers,
# whatever the flags of the source say. So fast and small sources need headers of their own. gcc 13
# refuses headers of another level.
function(kernwright_module_target name suffix)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  set(target kernwright_${name}${suffix})
  target_link_libraries(${target} PRIVATE kernwright_flags)
  target_compile_options(${target} PRIVATE ${kernwright_section_flags} ${ARG_OPTIONS})
  if(name STREQUAL base OR name STREQUAL sim)  # sim is built with flags of its own
    target_precompile_headers(${target} PRIVATE ${kernwright_precompiled})
  else()
    target_precompile_headers(${target} REUSE_FROM kernwright_base${suffix})
  endif()
endfunction()
