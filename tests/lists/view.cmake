pkg_check_modules(EXPAT REQUIRED IMPORTED_TARGET expat)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)

polyccl_unit_test(svg)
target_link_libraries(test_svg PRIVATE PkgConfig::EXPAT PkgConfig::JANSSON)

polyccl_unit_test(trace)
target_link_libraries(test_trace PRIVATE PkgConfig::JANSSON)

polyccl_unit_test(pictures)
target_link_libraries(test_pictures PRIVATE PkgConfig::EXPAT PkgConfig::JANSSON)
