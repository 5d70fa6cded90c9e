// PyTorch moved the type here in 2.9, and kept its old name.
#pragma once
#include <c10/util/Half.h>
