# Everything again on the newer device; what is one device's alone has values or tests for each.
add_test(NAME sim_CAPABILITY=9.0 COMMAND test_sim)
set_tests_properties(sim_CAPABILITY=9.0 PROPERTIES TIMEOUT 600
  ENVIRONMENT "KERNWRIGHT_SIM_CAPABILITY=9.0")

# Refreshes docs/ptx_coverage.md: build and run `write_isa_page docs/ptx_coverage.md`.
add_executable(write_isa_page EXCLUDE_FROM_ALL "${CMAKE_CURRENT_SOURCE_DIR}/sim/write_isa_page.cpp")
target_link_libraries(write_isa_page PRIVATE kernwright::sim kernwright_flags)

# For a machine with a GPU: `tensor_map_bytes > bytes.json` compares descriptors with the driver's.
add_executable(tensor_map_bytes EXCLUDE_FROM_ALL
  "${CMAKE_CURRENT_SOURCE_DIR}/gpu/tensor_map_bytes.cpp")
target_link_libraries(tensor_map_bytes PRIVATE kernwright::sim kernwright_flags ${CMAKE_DL_LIBS})
