polyccl_unit_test(plan_files)
polyccl_unit_test(plan_xml)
polyccl_unit_test(synth)
polyccl_unit_test(lift)

if(TARGET polyccl_tool)
  add_test(NAME formats_cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/formats_cli.sh $<TARGET_FILE:polyccl_tool>
                                    ${PROJECT_SOURCE_DIR})
  add_test(NAME kinds_cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/kinds_cli.sh $<TARGET_FILE:polyccl_tool>
                                  ${PROJECT_SOURCE_DIR})
  set_tests_properties(kinds_cli PROPERTIES TIMEOUT 300)
endif()

# What executors of MSCCL XML make of written plans: a model of them, and the interpreter.
foreach(name xml_targets xml_nops)
  polyccl_unit_test(${name})
  target_sources(test_${name} PRIVATE interpreter/msccl.c interpreter/msccl_run.c interpreter/msccl_tag.c interpreter/interpreter.c
                                             interpreter/machine.c interpreter/setup.c
                                      interpreter/table.c)
endforeach()
