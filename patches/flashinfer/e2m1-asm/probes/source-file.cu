// One of FlashInfer's headers with all kernels that it instantiates.

#define QUOTED(path) #path
#define QUOTE(path) QUOTED(path)
#include QUOTE(SOURCE)
