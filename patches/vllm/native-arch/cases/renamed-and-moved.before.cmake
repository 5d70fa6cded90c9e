# another variable, in a list of its own, as in other projects of cmake/
set(W4A16_SRC_ARCHS 8.0+PTX 9.0+PTX)
cuda_archs_loose_intersection(W4A16_ARCHS "${W4A16_SRC_ARCHS}" "${CUDA_ARCHS}")
