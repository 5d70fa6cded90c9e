#include <tvm/ffi/tensor.h>
