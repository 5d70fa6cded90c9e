// 0.25.1 and later
  if (a_type == vllm::kFE4M3fn) {
    STD_TORCH_CHECK(
        major_capability * 10 + minor_capability == 89 ||
            major_capability == 12,
        "Marlin W4A8-FP8 only support SM89 or SM12x device");
  }
