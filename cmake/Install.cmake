# cmake --install: one static library, the public headers, a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# Every module in one archive, so that a program links one name.
set(kernwright_modules base driver sim core memory array schedule jit worker worker_device tune
  kernels)
set(kernwright_objects "")
foreach(module IN LISTS kernwright_modules)
  list(APPEND kernwright_objects $<TARGET_OBJECTS:kernwright_${module}>)
  if(TARGET kernwright_${module}_fast)
    list(APPEND kernwright_objects $<TARGET_OBJECTS:kernwright_${module}_fast>)
  endif()
endforeach()
foreach(isa IN LISTS KERNWRIGHT_SIM_ISAS)
  list(APPEND kernwright_objects $<TARGET_OBJECTS:kernwright_sim_ops_${isa}>)
endforeach()
add_library(kernwright STATIC ${kernwright_objects})
set_target_properties(kernwright PROPERTIES LINKER_LANGUAGE CXX EXPORT_NAME kernwright)
target_compile_features(kernwright INTERFACE cxx_std_20)
target_include_directories(kernwright INTERFACE
  "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kernwright>")
target_link_libraries(kernwright INTERFACE Threads::Threads ${CMAKE_DL_LIBS})

install(TARGETS kernwright EXPORT kernwrightTargets COMPONENT cpp
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")

# Headers keep their folders: "array/array.h" is read beside kernwright.h. Those that need a library
# of their own, and the simulated device's inside, stay here.
set(folder "${CMAKE_INSTALL_INCLUDEDIR}/kernwright")
install(DIRECTORY runtime/base runtime/driver runtime/core runtime/memory runtime/array
  runtime/schedule jit worker tune
  DESTINATION "${folder}" COMPONENT cpp
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def"
  PATTERN "format.h" EXCLUDE PATTERN "log.h" EXCLUDE)
install(FILES runtime/sim/checks.h runtime/sim/device.h runtime/sim/line_profile.h
  runtime/sim/trace.h DESTINATION "${folder}/sim" COMPONENT cpp)
install(FILES runtime/sim/check/report/findings.h
  DESTINATION "${folder}/sim/check/report" COMPONENT cpp)
install(FILES kernels_src/device_headers.h DESTINATION "${folder}/kernels_src" COMPONENT cpp)
install(FILES bindings/cpp/kernwright.h DESTINATION "${folder}" COMPONENT cpp)

set(package "${CMAKE_INSTALL_LIBDIR}/cmake/kernwright")
configure_package_config_file(cmake/kernwrightConfig.cmake.in kernwrightConfig.cmake
  INSTALL_DESTINATION "${package}")
write_basic_package_version_file(kernwrightConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT kernwrightTargets NAMESPACE kernwright:: DESTINATION "${package}" COMPONENT cpp)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kernwrightConfig.cmake"
  "${CMAKE_CURRENT_BINARY_DIR}/kernwrightConfigVersion.cmake" cmake/kernwright_embed.cmake
  DESTINATION "${package}" COMPONENT cpp)

# NOTE: GNUInstallDirs may name absolute folders; pkg-config wants them below ${prefix} if it can.
foreach(kind LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${kind}}")
    set(pkgconfig_${kind} "${CMAKE_INSTALL_${kind}}")
  else()
    set(pkgconfig_${kind} "\${prefix}/${CMAKE_INSTALL_${kind}}")
  endif()
endforeach()
configure_file(cmake/kernwright.pc.in kernwright.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kernwright.pc"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig" COMPONENT cpp)
