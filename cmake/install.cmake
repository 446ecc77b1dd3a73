include(CMakePackageConfigHelpers)
install(TARGETS polyccl EXPORT polyccl-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/polyccl DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN *.h)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/algorithms DESTINATION ${CMAKE_INSTALL_DATADIR}/polyccl)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN *.1)
install(EXPORT polyccl-targets NAMESPACE polyccl:: FILE polyccl-config.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/polyccl)
write_basic_package_version_file(polyccl-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/polyccl-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/polyccl)
set(pc_folder ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH POLYCCL_PC_TO_PREFIX /${pc_folder} /) # from where it lies, so that any --prefix is right
configure_file(${PROJECT_SOURCE_DIR}/cmake/polyccl.pc.in polyccl.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/polyccl.pc DESTINATION ${pc_folder})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/polyccl DESTINATION lib/python3/dist-packages
        FILES_MATCHING PATTERN *.py)
