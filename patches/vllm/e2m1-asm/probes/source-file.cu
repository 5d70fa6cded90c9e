// One of vLLM's own source files, as its build compiles it: every kernel that it instantiates, with PyTorch's headers.

#define QUOTED(path) #path
#define QUOTE(path) QUOTED(path)
#include QUOTE(SOURCE)
