    # fp4patch: PyTorch writes arch=compute_20,code=sm_121 for a GPU of 12.1 that it detected
    string(REGEX REPLACE "arch=compute_[0-9]+[af]?,code=sm_" "arch=compute_" _ARCH "${_ARCH}")
