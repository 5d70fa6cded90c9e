include(marlin_archs.cmake)
cuda_archs_loose_intersection(MARLIN_ARCHS "${MARLIN_SRC_ARCHS}" "${CUDA_ARCHS}")
cuda_archs_loose_intersection(HADACORE_ARCHS "8.0+PTX;9.0+PTX" "${CUDA_ARCHS}")
