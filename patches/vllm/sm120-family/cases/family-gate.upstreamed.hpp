// 0.16 and later: the old gate stays for other kernels
template <typename Kernel>
struct enable_sm90_or_later : Kernel {};

template <typename Kernel>
struct enable_sm120_only : Kernel {
  template <typename... Args>
  CUTLASS_DEVICE void operator()(Args&&... args) {
#if defined __CUDA_ARCH__
  #if __CUDA_ARCH__ == 1200
    Kernel::operator()(std::forward<Args>(args)...);
  #endif
#endif
  }
};
template <typename Kernel>
struct enable_sm120_family : Kernel {};
