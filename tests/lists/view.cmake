pkg_check_modules(EXPAT REQUIRED IMPORTED_TARGET expat)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

polyccl_unit_test(svg)
target_link_libraries(test_svg PRIVATE PkgConfig::EXPAT PkgConfig::JANSSON)

polyccl_unit_test(trace)
target_link_libraries(test_trace PRIVATE PkgConfig::JANSSON)

polyccl_unit_test(pictures)
target_link_libraries(test_pictures PRIVATE PkgConfig::EXPAT PkgConfig::JANSSON)

find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  add_test(NAME view_command COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/view/command.py
                                     $<TARGET_FILE:polyccl_tool> ${PROJECT_SOURCE_DIR})
  set_tests_properties(view_command PROPERTIES TIMEOUT 120)
  add_test(NAME run_trace COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/view/run_trace.py
                                  $<TARGET_FILE:polyccl_tool> ${PROJECT_SOURCE_DIR})
  set_tests_properties(run_trace PROPERTIES TIMEOUT 200)
  add_test(NAME manual COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/view/manual.py
                               $<TARGET_FILE:polyccl_tool> ${PROJECT_SOURCE_DIR})
  add_test(NAME docs_cli COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs_cli.py $<TARGET_FILE:polyccl_tool>)
  # The page in a browser; prints how long a redraw takes, leaves screenshots in the build folder.
  add_test(NAME view_browser COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/view/browser.py
                                     $<TARGET_FILE:polyccl_tool> ${CMAKE_CURRENT_BINARY_DIR}/view)
  set_tests_properties(view_browser PROPERTIES TIMEOUT 300 LABELS slow SKIP_RETURN_CODE 77)
endif()

# The pictures of docs/ are what docs/pictures/make.sh draws.
add_test(NAME docs_pictures COMMAND bash -c "rm -rf $2 && mkdir -p $2 && $0 $1 $2 && for f in $2/*.svg; do cmp $f $3/$(basename $f) || exit 1; done"
         ${PROJECT_SOURCE_DIR}/docs/pictures/make.sh $<TARGET_FILE:polyccl_tool> ${CMAKE_CURRENT_BINARY_DIR}/pictures
         ${PROJECT_SOURCE_DIR}/docs/pictures)
set_tests_properties(docs_pictures PROPERTIES TIMEOUT 60 LABELS slow)
