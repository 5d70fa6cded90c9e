#pragma once
#include <tensor.h>
// A library of operators: what it has is called by name in the layer.
#define STABLE_TORCH_LIBRARY_IMPL(library, key, m) template <typename Library> void library##_##key(Library m)
#define TORCH_BOX(function) function
