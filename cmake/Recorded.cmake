# Recorded test data: archives in the source tree, unpacked into the build folder at configuration.

# kernwright_recorded(<archive> <variable>): unpacks the .tar.xz into <build>/recorded/<stem> when
# the archive has changed, and names that folder in the variable.
function(kernwright_recorded archive variable)
  cmake_path(ABSOLUTE_PATH archive BASE_DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}")
  cmake_path(GET archive STEM stem)
  set(folder "${PROJECT_BINARY_DIR}/recorded/${stem}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${archive}")
  file(SHA256 "${archive}" now)
  set(before "")
  if(EXISTS "${folder}.sha256")
    file(READ "${folder}.sha256" before)
  endif()
  if(NOT now STREQUAL before OR NOT IS_DIRECTORY "${folder}")
    file(REMOVE_RECURSE "${folder}")
    file(ARCHIVE_EXTRACT INPUT "${archive}" DESTINATION "${folder}")
    file(WRITE "${folder}.sha256" "${now}")
  endif()
  set(${variable} "${folder}" PARENT_SCOPE)
endfunction()
