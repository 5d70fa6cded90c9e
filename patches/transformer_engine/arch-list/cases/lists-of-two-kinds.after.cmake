set(NVTE_GENERIC_ARCHS)
set(NVTE_SPECIFIC_ARCHS)

# Architecture 121, as 120 below: the target with a suffix for the sources that need one.
if("121" IN_LIST CMAKE_CUDA_ARCHITECTURES)
  list(REMOVE_ITEM CMAKE_CUDA_ARCHITECTURES "121")
  list(APPEND NVTE_GENERIC_ARCHS "121")
  list(APPEND NVTE_SPECIFIC_ARCHS "121a")
endif()

# Check for architecture 120
list(FIND CMAKE_CUDA_ARCHITECTURES "120" arch_120_index)
if(NOT arch_120_index EQUAL -1)
  list(REMOVE_ITEM CMAKE_CUDA_ARCHITECTURES "120")
  list(APPEND NVTE_GENERIC_ARCHS "120")
  if(CUDAToolkit_VERSION VERSION_GREATER_EQUAL 12.9)
    list(APPEND NVTE_SPECIFIC_ARCHS "120f")
  else()
    list(APPEND NVTE_SPECIFIC_ARCHS "120a")
  endif()
endif()
