#include <iterator>

#include "cpu/core/backend.h"
#include "sorot/version.h"

namespace sorot::inline v0 {
namespace {

#define SOROT_TEXT_OF(x) #x
#define SOROT_TEXT(x) SOROT_TEXT_OF(x)
#if defined(__clang__)
constexpr char kCompiler[] = "clang " SOROT_TEXT(__clang_major__) "." SOROT_TEXT(__clang_minor__);
#elif defined(__GNUC__)
constexpr char kCompiler[] = "g++ " SOROT_TEXT(__GNUC__) "." SOROT_TEXT(__GNUC_MINOR__);
#else
constexpr char kCompiler[] = "unknown";
#endif

constexpr const DeviceInfo* kDevices[] = {
    &core::kReferenceBackend.info,
#if SOROT_HAS_CUDA
    &core::kCudaBackend.info,
#endif
};
constexpr BuildInfo kBuildInfo{SOROT_VERSION, kCompiler, SOROT_CUDA_COMPILER, kDevices, std::size(kDevices)};

}  // namespace

const BuildInfo& build_info() noexcept { return kBuildInfo; }

}  // namespace sorot::inline v0
