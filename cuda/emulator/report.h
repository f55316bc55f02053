#pragma once

#include <string>

#include "cuda/emulator/engine.h"
#include "sorot/status.h"

namespace sorot::inline v0::emulator {

/// A failure as the library reports it, with the line that asked; the whole of it is kept for last_report().
Status status_of(const Failure& failure, const char* call, Site site);

const std::string& report();

}  // namespace sorot::inline v0::emulator
