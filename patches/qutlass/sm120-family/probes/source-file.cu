// One of QuTLASS's own source files, as its build compiles it: every kernel that it instantiates.

#define QUOTED(path) #path
#define QUOTE(path) QUOTED(path)
#include QUOTE(SOURCE)
