# kernwright_room(<name> [DEPENDS room...] [FAST regex...] [EXCLUDE regex...]): one static library
# per room from the folder's *.cpp. Sub-folders belong to the room too. A room sees only the rooms
# that it lists. Sources are compiled for size but for those on hot paths, whose paths match FAST.
function(kernwright_room name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;FAST;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cpp")
  foreach(pattern IN LISTS ARG_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${pattern}")
  endforeach()
  add_library(kernwright_${name} STATIC ${sources})
  kernwright_build_small(FAST ${ARG_FAST} SOURCES ${sources})
  add_library(kernwright::${name} ALIAS kernwright_${name})
  target_include_directories(kernwright_${name} PUBLIC
    "${PROJECT_SOURCE_DIR}/runtime" "${PROJECT_SOURCE_DIR}")
  target_link_libraries(kernwright_${name} PRIVATE kernwright_flags)
  target_compile_options(kernwright_${name} PRIVATE ${kernwright_section_flags})
  if(name STREQUAL base OR name STREQUAL sim)  # sim is built with flags of its own
    target_precompile_headers(kernwright_${name} PRIVATE ${kernwright_precompiled})
  else()
    target_precompile_headers(kernwright_${name} REUSE_FROM kernwright_base)
  endif()
  foreach(room IN LISTS ARG_DEPENDS)
    target_link_libraries(kernwright_${name} PUBLIC kernwright::${room})
  endforeach()
endfunction()

# kernwright_build_small(FAST regex... SOURCES file...): sources that match none of the expressions
# are compiled for size.
function(kernwright_build_small)
  cmake_parse_arguments(ARG "" "" "FAST;SOURCES" ${ARGN})
  foreach(pattern IN LISTS ARG_FAST)
    list(FILTER ARG_SOURCES EXCLUDE REGEX "${pattern}")
  endforeach()
  set_property(SOURCE ${ARG_SOURCES} APPEND PROPERTY COMPILE_OPTIONS
    "${kernwright_small_flags}")
  # NOTE: gcc 13 takes precompiled headers of no other optimisation level; gcc 12 does.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    set_property(SOURCE ${ARG_SOURCES} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()
