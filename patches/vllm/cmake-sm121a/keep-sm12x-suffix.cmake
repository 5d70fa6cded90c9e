
  # A build for 12.1 says which instructions it wants by the suffix: each 12.x target whose number stands in this list,
  # with a suffix or without, is taken as the build names it. Builds that do not name 12.1 see what they always saw.
  if("${_TGT_CUDA_ARCHS}" MATCHES "(^|;)12\\.1")
    foreach(_arch ${_TGT_CUDA_ARCHS})
      if(_arch MATCHES "^12\\.[0-9]+[af]$")
        string(REGEX REPLACE "[af]$" "" _base "${_arch}")
        if("${_base}" IN_LIST _SRC_CUDA_ARCHS OR "${_base}a" IN_LIST _SRC_CUDA_ARCHS
           OR "${_base}f" IN_LIST _SRC_CUDA_ARCHS)
          list(REMOVE_ITEM _TGT_CUDA_ARCHS "${_arch}")
          list(APPEND _CUDA_ARCHS "${_arch}")
        endif()
      endif()
    endforeach()
  endif()
