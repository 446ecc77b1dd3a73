polyccl_unit_test(verify)

set(interpreter interpreter/interpreter.c interpreter/machine.c interpreter/setup.c interpreter/table.c)

polyccl_unit_test(alias)
target_sources(test_alias PRIVATE ${interpreter})

# The verifier against the interpreter: a short share here, all of it by mutation/run.sh.
add_executable(mutation mutation/mutation.c mutation/mutate.c ${interpreter})
target_link_libraries(mutation PRIVATE polyccl_static)
file(GLOB right_plans ${CMAKE_CURRENT_SOURCE_DIR}/plans/right/*.plan)
add_test(NAME mutation COMMAND mutation -n 150 ${right_plans})
set_tests_properties(mutation PROPERTIES TIMEOUT 120)

add_executable(interpreter_agrees interpreter/agrees.c ${interpreter})
target_link_libraries(interpreter_agrees PRIVATE polyccl_static)
target_compile_definitions(interpreter_agrees PRIVATE POLYCCL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
add_test(NAME interpreter_agrees COMMAND interpreter_agrees)

add_executable(interpreter_sequences interpreter/sequences.c interpreter/sequence.c ${interpreter})
target_link_libraries(interpreter_sequences PRIVATE polyccl_static)
target_compile_definitions(interpreter_sequences PRIVATE POLYCCL_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
add_test(NAME interpreter_sequences COMMAND interpreter_sequences)

if(TARGET polyccl_tool)
  add_test(NAME mutation_algorithms COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/mutation/run.sh 500)
  set_tests_properties(mutation_algorithms PROPERTIES TIMEOUT 300 LABELS "slow;mutation"
                                                      ENVIRONMENT "BUILD=${CMAKE_BINARY_DIR}")

  add_test(NAME growth COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/growth.sh $<TARGET_FILE:polyccl_tool> ${PROJECT_SOURCE_DIR}
                               ${POLYCCL_SANITIZE})
  set_tests_properties(growth PROPERTIES TIMEOUT 300)
endif()
