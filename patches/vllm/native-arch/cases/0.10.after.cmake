# 0.10.2 and 0.11.0: PTX for 9.0 alone; hadacore has none, and is not compiled for SM12x
cuda_archs_loose_intersection(MARLIN_ARCHS "8.0;8.7;12.0;12.1;9.0+PTX" "${CUDA_ARCHS}")
cuda_archs_loose_intersection(ALLSPARK_ARCHS "8.0;8.6;8.7;8.9" "${CUDA_ARCHS}")
cuda_archs_loose_intersection(HADACORE_ARCHS "8.0;8.9;9.0" "${CUDA_ARCHS}")
cuda_archs_loose_intersection(SCALED_MM_2X_ARCHS
  "7.5;8.0;8.7;8.9+PTX" "${CUDA_ARCHS}")
