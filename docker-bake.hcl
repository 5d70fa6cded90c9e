# Made by `fp4patch build --print-bake`; a test makes it again and compares.
#
# A build context each, then all of them, or a group (a variant's name), or one:
#
#     fp4patch build --variant next3 --arch 12.1a --dry-run --context contexts/next3-gb10
#     docker buildx bake next3-gb10
#
# `fp4patch build` does more: it looks at the engine first, and labels the image with the digest of its receipts.

variable "CONTEXTS" {
  default = "contexts"
}

variable "REPOSITORY" {
  default = "vllm-nvfp4"
}

variable "PINS" {
  default = {
    native = {
      BASE_IMAGE = "nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6"
      RUNTIME_IMAGE = "nvidia/cuda:13.0.2-runtime-ubuntu24.04@sha256:6a0e31b59e70890446f2c17356d6efc0d54260090a8c63d6ca7c2ad049db95d2"
      VARIANT = "native"
      VLLM_VERSION = "0.33.0"
      CUTLASS_VERSION = "4.7.1"
      GCC_VERSION = "13"
      TORCH_VERSION = "2.14.0"
      CUTLASS_FROM = null
    }
    next2 = {
      BASE_IMAGE = "nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6"
      RUNTIME_IMAGE = "nvidia/cuda:13.0.2-runtime-ubuntu24.04@sha256:6a0e31b59e70890446f2c17356d6efc0d54260090a8c63d6ca7c2ad049db95d2"
      VARIANT = "next2"
      VLLM_VERSION = "0.18.1"
      CUTLASS_VERSION = "4.3.5"
      GCC_VERSION = "0"
      TORCH_VERSION = "2.10.0+cu130"
      CUTLASS_FROM = null
    }
    next3 = {
      BASE_IMAGE = "nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6"
      RUNTIME_IMAGE = "nvidia/cuda:13.0.2-runtime-ubuntu24.04@sha256:6a0e31b59e70890446f2c17356d6efc0d54260090a8c63d6ca7c2ad049db95d2"
      VARIANT = "next3"
      VLLM_VERSION = "0.33.0"
      CUTLASS_VERSION = "4.7.1"
      GCC_VERSION = "13"
      TORCH_VERSION = "2.14.0"
      CUTLASS_FROM = null
    }
    turbo = {
      BASE_IMAGE = "nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6"
      RUNTIME_IMAGE = "nvidia/cuda:13.0.2-runtime-ubuntu24.04@sha256:6a0e31b59e70890446f2c17356d6efc0d54260090a8c63d6ca7c2ad049db95d2"
      VARIANT = "turbo"
      VLLM_VERSION = "0.18.1"
      CUTLASS_VERSION = "4.2.1"
      GCC_VERSION = "0"
      TORCH_VERSION = "2.10.0+cu130"
      CUTLASS_FROM = "git"
    }
    turbo2 = {
      BASE_IMAGE = "nvidia/cuda:13.0.2-devel-ubuntu24.04@sha256:5dc1bca23d05bd37b011be68ec470c03b403a5da07ec3a86e41af9470e9d0cc6"
      RUNTIME_IMAGE = "nvidia/cuda:13.0.2-runtime-ubuntu24.04@sha256:6a0e31b59e70890446f2c17356d6efc0d54260090a8c63d6ca7c2ad049db95d2"
      VARIANT = "turbo2"
      VLLM_VERSION = "0.18.1"
      CUTLASS_VERSION = "4.2.1"
      GCC_VERSION = "0"
      TORCH_VERSION = "2.10.0+cu130"
      CUTLASS_FROM = "git"
    }
  }
}

variable "GPUS" {
  default = {
    gb10 = {
      FP4_ARCH = "sm_121a"
      FP4_FOR = "sm_121"
      TORCH_CUDA_ARCH_LIST = "12.1a"
      platforms = ["linux/arm64"]
    }
    rtx = {
      FP4_ARCH = "sm_120a"
      FP4_FOR = "sm_120"
      TORCH_CUDA_ARCH_LIST = "12.0a"
      platforms = ["linux/amd64"]
    }
    both = {
      FP4_ARCH = "sm_120a,sm_121a"
      FP4_FOR = "sm_120,sm_121"
      TORCH_CUDA_ARCH_LIST = "12.0a;12.1a"
      platforms = ["linux/amd64", "linux/arm64"]
    }
  }
}

group "default" {
  targets = ["native-gb10", "native-rtx", "native-both", "next2-gb10", "next2-rtx", "next2-both", "next3-gb10", "next3-rtx", "next3-both", "turbo-gb10", "turbo-rtx", "turbo-both", "turbo2-gb10", "turbo2-rtx", "turbo2-both"]
}

group "native" {
  targets = ["native-gb10", "native-rtx", "native-both"]
}

group "next2" {
  targets = ["next2-gb10", "next2-rtx", "next2-both"]
}

group "next3" {
  targets = ["next3-gb10", "next3-rtx", "next3-both"]
}

group "turbo" {
  targets = ["turbo-gb10", "turbo-rtx", "turbo-both"]
}

group "turbo2" {
  targets = ["turbo2-gb10", "turbo2-rtx", "turbo2-both"]
}

target "image" {
  matrix = { variant = ["native", "next2", "next3", "turbo", "turbo2"], gpus = ["gb10", "rtx", "both"] }
  name = "${variant}-${gpus}"
  context = "${CONTEXTS}/${variant}-${gpus}"
  target = "runtime"
  platforms = GPUS[gpus].platforms
  tags = ["${REPOSITORY}:${variant}-${gpus}"]
  args = {
    BASE_IMAGE = PINS[variant].BASE_IMAGE
    RUNTIME_IMAGE = PINS[variant].RUNTIME_IMAGE
    VARIANT = PINS[variant].VARIANT
    VLLM_VERSION = PINS[variant].VLLM_VERSION
    CUTLASS_VERSION = PINS[variant].CUTLASS_VERSION
    GCC_VERSION = PINS[variant].GCC_VERSION
    TORCH_VERSION = PINS[variant].TORCH_VERSION
    CUTLASS_FROM = PINS[variant].CUTLASS_FROM
    FP4_ARCH = GPUS[gpus].FP4_ARCH
    FP4_FOR = GPUS[gpus].FP4_FOR
    TORCH_CUDA_ARCH_LIST = GPUS[gpus].TORCH_CUDA_ARCH_LIST
  }
}
