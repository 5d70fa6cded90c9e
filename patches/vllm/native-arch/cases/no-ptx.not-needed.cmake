cuda_archs_loose_intersection(MARLIN_ARCHS "8.0;12.0f" "${CUDA_ARCHS}")
cuda_archs_loose_intersection(SCALED_MM_2X_ARCHS "7.5;8.0;8.7;8.9+PTX" "${CUDA_ARCHS}")
