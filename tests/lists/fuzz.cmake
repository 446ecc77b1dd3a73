include(fuzz/counted.cmake)
if(POLYCCL_FUZZ)
  add_subdirectory(fuzz)
endif()

# Work for each unit of input; without sanitizers, for their work is not the project's.
if(NOT POLYCCL_SANITIZE)
  add_executable(work_climb fuzz/work_climb.c)
  polyccl_counted_program(work_climb)
  add_test(NAME work COMMAND work_climb 20)
  set_tests_properties(work PROPERTIES TIMEOUT 600)
endif()
