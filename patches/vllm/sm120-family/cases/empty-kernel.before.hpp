// 0.10.2 to 0.14.1: for SM121 the kernel is compiled to nothing
template <typename Kernel>
struct enable_sm90_or_later : Kernel {};

template <typename Kernel>
struct enable_sm120_only : Kernel {
  template <typename... Args>
  CUTLASS_DEVICE void operator()(Args&&... args) {
#if defined __CUDA_ARCH__ && __CUDA_ARCH__ == 1200
    Kernel::operator()(std::forward<Args>(args)...);
#endif
  }
};
