if(POLYCCL_FUZZ)
  add_subdirectory(fuzz)
endif()
