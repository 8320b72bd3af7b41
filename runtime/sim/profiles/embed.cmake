# kernwright_embed_profile(<json> <header>): turns a device profile into a C++ table when CMake
# configures, so that nothing has to be parsed at run time. Adjusted values win over captured ones.
function(kernwright_profile_rows text section prefix out)
  string(JSON count LENGTH "${text}" ${section})
  math(EXPR last "${count} - 1")
  set(rows "")
  foreach(index RANGE ${last})
    string(JSON key MEMBER "${text}" ${section} ${index})
    string(JSON value GET "${text}" ${section} ${key})
    string(JSON adjusted ERROR_VARIABLE missing GET "${text}" adjusted_${section} ${key} value)
    if(missing STREQUAL "NOTFOUND")
      set(value ${adjusted})
    endif()
    string(APPEND rows "${prefix}(${key}, ${value})\n")
  endforeach()
  set(${out} "${rows}" PARENT_SCOPE)
endfunction()

# kernwright_embed_overlay(<json> <header>): the rows of a profile that differ from another's.
function(kernwright_embed_overlay json header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${json}")
  file(READ "${json}" text)
  kernwright_profile_rows("${text}" attributes KW_PROFILE_ATTRIBUTE attributes)
  kernwright_profile_rows("${text}" limits KW_PROFILE_LIMIT limits)
  file(CONFIGURE OUTPUT "${header}" CONTENT
"// Made from a device profile's differences by profiles/embed.cmake.
${attributes}${limits}")
endfunction()

function(kernwright_embed_profile json header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${json}")
  file(READ "${json}" text)
  kernwright_profile_rows("${text}" attributes KW_PROFILE_ATTRIBUTE attributes)
  kernwright_profile_rows("${text}" limits KW_PROFILE_LIMIT limits)
  string(JSON name GET "${text}" name)
  string(JSON version GET "${text}" driver_version)
  string(JSON least GET "${text}" priority_least)
  string(JSON greatest GET "${text}" priority_greatest)
  file(CONFIGURE OUTPUT "${header}" CONTENT
"// Made from the device profile by profiles/embed.cmake.
KW_PROFILE_NAME(\"${name}\")
KW_PROFILE_VERSION(${version})
KW_PROFILE_PRIORITIES(${least}, ${greatest})
${attributes}${limits}")
endfunction()
