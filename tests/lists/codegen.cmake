# Generated code against the definition of each collective; under the thread sanitizer a few algorithms.
if(NOT POLYCCL_SANITIZE)
  add_test(NAME generated COMMAND ${PROJECT_SOURCE_DIR}/tests/generated.sh ${CMAKE_BINARY_DIR} --threads)
  set_tests_properties(generated PROPERTIES LABELS slow TIMEOUT 300)
elseif(POLYCCL_SANITIZE STREQUAL "thread")
  add_test(NAME generated_tsan COMMAND ${PROJECT_SOURCE_DIR}/tests/generated.sh ${CMAKE_BINARY_DIR} --threads)
  set_tests_properties(generated_tsan PROPERTIES LABELS tsan TIMEOUT 300 ENVIRONMENT
    "SANITIZE=thread;ALGORITHMS=algorithms/allreduce_ring.lua algorithms/alltoall_two_step.lua algorithms/allreduce_allpairs.lua")
endif()
