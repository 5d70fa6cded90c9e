# 0.20 with CUDA 12
cuda_archs_loose_intersection(QUTLASS_ARCHS "12.0a;12.1a;10.0a;10.3a" "${CUDA_ARCHS}")
if(QUTLASS_ARCHS MATCHES "10\\.(0a|3a|0f)")
  set(QUTLASS_TARGET_CC 100)
elseif(QUTLASS_ARCHS MATCHES "12\\.[01][af]?")
  set(QUTLASS_TARGET_CC 120)
endif()
