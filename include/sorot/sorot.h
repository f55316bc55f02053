#pragma once

/// Everything Sorot offers: attention kernels behind one thin API. See README.md for a first example.
#include "sorot/attention.h"
#include "sorot/context.h"
#include "sorot/dtype.h"
#include "sorot/export.h"
#include "sorot/plan.h"
#include "sorot/status.h"
#include "sorot/tensor.h"
#include "sorot/version.h"
