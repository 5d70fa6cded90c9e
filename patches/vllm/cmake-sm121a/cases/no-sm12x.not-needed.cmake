# Lists without SM12x are left alone, as are words in comments and messages: "12.0f"
cuda_archs_loose_intersection(MACHETE_ARCHS "9.0a" "${CUDA_ARCHS}")
list(APPEND SUPPORT_ARCHS "10.0f")
message(STATUS "12.0f")
