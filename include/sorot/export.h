#pragma once

/// Marks what a shared libsorot exports; everything else in it is hidden.
#if defined(__GNUC__) || defined(__clang__)
#define SOROT_API __attribute__((visibility("default")))
#else
#define SOROT_API
#endif
