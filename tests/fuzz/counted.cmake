# The library once more, with a call of __sanitizer_cov_trace_pc (work.h) in every basic block: the same input gives the
# same count on every machine. Always -O1, so that the build's type does not change it. Up to the compiler, the highest
# folder whose work is counted.
function(polyccl_counted_library)
  if(TARGET polyccl_counted)
    return()
  endif()
  get_property(packages GLOBAL PROPERTY POLYCCL_PACKAGES)
  add_library(polyccl_counted STATIC EXCLUDE_FROM_ALL)
  foreach(module base topology program language plan simulator trace view compiler)
    get_target_property(folder polyccl_${module} SOURCE_DIR)
    get_target_property(sources polyccl_${module} SOURCES)
    list(TRANSFORM sources PREPEND "${folder}/" REGEX "^[^/]")
    target_sources(polyccl_counted PRIVATE ${sources})
    add_dependencies(polyccl_counted polyccl_${module}) # generated sources
    target_include_directories(polyccl_counted PRIVATE $<TARGET_PROPERTY:polyccl_${module},INCLUDE_DIRECTORIES>)
  endforeach()
  target_include_directories(polyccl_counted PUBLIC ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
  target_compile_options(polyccl_counted PRIVATE -O1 -fsanitize-coverage=trace-pc)
  target_link_libraries(polyccl_counted PUBLIC ${packages} Threads::Threads m ${CMAKE_DL_LIBS})
endfunction()

# Work of the C library that grows with its arguments is counted there, too (work.h).
function(polyccl_counted_program name)
  polyccl_counted_library()
  target_link_libraries(${name} PRIVATE polyccl_counted)
  foreach(call __sanitizer_cov_trace_pc memcpy memmove memset calloc)
    target_link_options(${name} PRIVATE -Wl,--wrap=${call})
  endforeach()
endfunction()
