polyccl_unit_test(base)
polyccl_unit_test(kinds)

if(TARGET polyccl_tool)
  add_test(NAME command_cli COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/command_cli.sh $<TARGET_FILE:polyccl_tool>)
  if(NOT POLYCCL_SANITIZE)
    add_test(NAME install COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/install.sh ${CMAKE_BINARY_DIR})
  endif()
endif()
