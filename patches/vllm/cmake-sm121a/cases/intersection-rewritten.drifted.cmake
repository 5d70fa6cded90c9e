# Not a release: a function that the patch does not know
function(cuda_archs_loose_intersection OUT_CUDA_ARCHS SRC_CUDA_ARCHS TGT_CUDA_ARCHS)
  set(_FOUND)
  foreach(_arch ${SRC_CUDA_ARCHS})
    list(APPEND _FOUND "${_arch}")
  endforeach()
  set(${OUT_CUDA_ARCHS} ${_FOUND} PARENT_SCOPE)
endfunction()
