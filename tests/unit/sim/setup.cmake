kernwright_tests_alone(sim check/copies/async_proxy check/copies/bulk_copies
  check/copies/wgmma_groups check/handlers/checked_gather check/handlers/checked_scatter
  check/order/cluster_order code/simplify device/stream/stream_model exec/warp/scheduler
  ops/async/cluster ops/integer/integer ops/matrix/matrix_sparse ops/matrix/wgmma
  ops/matrix/wgmma_sparse)
kernwright_tests_fast(sim check/race/random check/race/random_atomic check/race/random_bulk
  check/race/random_cluster exec/copy/im2col exec/copy/interleave exec/copy/tensor_copy)

# The one source that knows where the tests are, and where the build has unpacked the PTX texts.
set_source_files_properties(unit/sim/ptx/ptx_corpus.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON
  COMPILE_DEFINITIONS
  "KW_PTX_FOLDER=\"${ptx_folder}\";KW_TESTS_FOLDER=\"${CMAKE_CURRENT_SOURCE_DIR}\""
  SKIP_PRECOMPILE_HEADERS ON)

# Again on the newer device, but for what asks no device or names the one that it wants; what is one
# device's alone has values or tests for each.
set(not_again check\ random\ atomic check\ random\ bulk check\ random\ cluster mutation numeric
  tensor\ copies im2col interleaved\ copies large\ module request)
list(TRANSFORM not_again APPEND ":*")
list(JOIN not_again "," not_again)
add_test(NAME sim_CAPABILITY=9.0 COMMAND test_sim "--test-case-exclude=${not_again}")
set_tests_properties(sim_CAPABILITY=9.0 PROPERTIES TIMEOUT 0
  ENVIRONMENT "KERNWRIGHT_SIM_CAPABILITY=9.0")

# For a machine with a GPU: `tensor_map_bytes > bytes.json` compares descriptors with the driver's.
add_executable(tensor_map_bytes EXCLUDE_FROM_ALL
  "${CMAKE_CURRENT_SOURCE_DIR}/gpu/tensor_map_bytes.cpp")
target_link_libraries(tensor_map_bytes PRIVATE kernwright::sim kernwright_flags ${CMAKE_DL_LIBS})
