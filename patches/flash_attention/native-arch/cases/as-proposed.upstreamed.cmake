# https://github.com/vllm-project/flash-attention/pull/196
list(APPEND CUDA_SUPPORTED_ARCHS "10.0" "11.0" "12.0" "12.1")
cuda_archs_loose_intersection(FA2_ARCHS "8.0+PTX;12.0;12.1" "${CUDA_ARCHS}")
