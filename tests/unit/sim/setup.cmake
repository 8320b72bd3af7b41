kernwright_tests_alone(sim check_bulk check_cluster check_scatter control hopper_cluster integer
  matrix_sparse simplify stream_model wgmma wgmma_sparse)
kernwright_tests_fast(sim check_random check_random_atomic check_random_bulk check_random_cluster
  hopper_im2col hopper_tensor)

# Again on the newer device, but for what asks no device or names the one that it wants; what is one
# device's alone has values or tests for each.
set(not_again check\ random\ atomic check\ random\ bulk check\ random\ cluster mutation numeric
  tensor\ copies im2col)
list(TRANSFORM not_again APPEND ":*")
list(JOIN not_again "," not_again)
add_test(NAME sim_CAPABILITY=9.0 COMMAND test_sim "--test-case-exclude=${not_again}")
set_tests_properties(sim_CAPABILITY=9.0 PROPERTIES TIMEOUT 600
  ENVIRONMENT "KERNWRIGHT_SIM_CAPABILITY=9.0")

# Refreshes docs/ptx_coverage.md: build and run `write_isa_page docs/ptx_coverage.md`.
add_executable(write_isa_page EXCLUDE_FROM_ALL "${CMAKE_CURRENT_SOURCE_DIR}/sim/write_isa_page.cpp"
  "${CMAKE_CURRENT_SOURCE_DIR}/unit/sim/isa_page.cpp")
target_include_directories(write_isa_page PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_link_libraries(write_isa_page PRIVATE kernwright::sim kernwright_flags)

# For a machine with a GPU: `tensor_map_bytes > bytes.json` compares descriptors with the driver's.
add_executable(tensor_map_bytes EXCLUDE_FROM_ALL
  "${CMAKE_CURRENT_SOURCE_DIR}/gpu/tensor_map_bytes.cpp")
target_link_libraries(tensor_map_bytes PRIVATE kernwright::sim kernwright_flags ${CMAKE_DL_LIBS})
