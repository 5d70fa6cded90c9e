# 0.10.2 and 0.11: no families
cuda_archs_loose_intersection(SCALED_MM_ARCHS "12.1;12.0;12.1a;12.0a" "${CUDA_ARCHS}")
if(${CMAKE_CUDA_COMPILER_VERSION} VERSION_GREATER_EQUAL 12.8 AND SCALED_MM_ARCHS)
  message(STATUS "Building scaled_mm_c3x_sm120 for archs: ${SCALED_MM_ARCHS}")
endif()
cuda_archs_loose_intersection(FP4_ARCHS "12.1;12.0;12.1a;12.0a" "${CUDA_ARCHS}") # "12.0a" in a comment
cuda_archs_loose_intersection(FP4_ARCHS "10.0a" "${CUDA_ARCHS}")
