// Made by PyTorch's own build, and missing from its CPU packages: how the library was linked, no matter for a header.
#pragma once
