
# Architecture 121, as 120 below: the target with a suffix for the sources that need one.
if("121" IN_LIST CMAKE_CUDA_ARCHITECTURES)
  list(REMOVE_ITEM CMAKE_CUDA_ARCHITECTURES "121")
  list(APPEND NVTE_GENERIC_ARCHS "121")
  list(APPEND NVTE_SPECIFIC_ARCHS "121a")
endif()
