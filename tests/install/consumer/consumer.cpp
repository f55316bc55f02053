// What a user writes: three tokens attend to each other (q = k = v), and the numbers are checked by the formula.
#include <sorot/sorot.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>

namespace {

constexpr int kTokens = 3;
constexpr int kDim = 4;
constexpr float kWords[kTokens][kDim] = {{1, 0, 0.5F, 2}, {0, 1, -1, 0.25F}, {1, 1, 0, -3}};

int fail(const char* what, const char* why) {
  std::printf("%s: %s\n", what, why);
  return 1;
}

/// Largest distance of out from softmax(words . words^T / sqrt(D)) . words.
double error_of(const float (&out)[kTokens][kDim]) {
  double error = 0;
  for (int i = 0; i < kTokens; ++i) {
    double expected[kDim] = {};
    double z = 0;
    for (int j = 0; j < kTokens; ++j) {
      double dot = 0;
      for (int d = 0; d < kDim; ++d) dot += double{kWords[i][d]} * double{kWords[j][d]};
      const double weight = std::exp(dot / std::sqrt(double{kDim}));
      z += weight;
      for (int d = 0; d < kDim; ++d) expected[d] += weight * double{kWords[j][d]};
    }
    for (int d = 0; d < kDim; ++d) error = std::fmax(error, std::abs(double{out[i][d]} - expected[d] / z));
  }
  return error;
}

/// What a build says of CUDA and what it does: EXPECTED_CUDA is ON, OFF or EMULATED.
int check_cuda() {
  const bool on = std::strcmp(EXPECTED_CUDA, "ON") == 0;
  const bool emulated = std::strcmp(EXPECTED_CUDA, "EMULATED") == 0;
  const char* compiler = sorot::build_info().cuda_compiler;
  const char* expected = on ? "nvcc " : emulated ? "emulated" : "none";
  if (compiler == nullptr) compiler = "none";
  if (std::strncmp(compiler, expected, std::strlen(expected)) != 0) return fail("cuda_compiler", compiler);

  const bool gpu = on && std::filesystem::exists("/dev/nvidiactl");
  sorot::Context context;
  const sorot::Status status = sorot::Context::cuda(0, nullptr, context);
  std::printf("CUDA compiler: %s; device 0: %s %s\n", compiler, sorot::name(status.code()), status.message());
  const sorot::StatusCode wanted = emulated || gpu ? sorot::StatusCode::kOk : sorot::StatusCode::kNoDevice;
  if (status.code() != wanted) return fail("Context::cuda, expected", sorot::name(wanted));
  if (std::strcmp(context.device_name(), status.ok() ? "cuda" : "none") != 0)
    return fail("name", context.device_name());
  return 0;
}

}  // namespace

int main() {
  if (check_cuda() != 0) return 1;

  const sorot::BuildInfo& build = sorot::build_info();
  if (std::strcmp(build.version, EXPECTED_VERSION) != 0)
    return fail("expected version " EXPECTED_VERSION, build.version);

  float result[kTokens][kDim];
  const auto words = sorot::view(&kWords[0][0], {1, 1, kTokens, kDim});
  const sorot::AttentionArgs args{words, words, words, sorot::view(&result[0][0], {1, 1, kTokens, kDim})};

  const sorot::Context context = sorot::Context::reference();
  sorot::AttentionPlan plan;
  if (auto s = sorot::attention_plan(context, args, plan); !s.ok()) return fail("attention_plan", s.message());
  alignas(256) static unsigned char buffer[4096];
  if (plan.workspace_bytes > sizeof buffer) return fail("plan", "needs more than 4096 bytes of workspace");
  if (auto s = sorot::attention(context, plan, args, {buffer, sizeof buffer}); !s.ok()) {
    return fail("attention", s.message());
  }
  std::printf("%s; error %.1e\n", sorot::explain(plan).c_str(), error_of(result));
  return error_of(result) < 1e-6 ? 0 : fail("attention", "wrong numbers");
}
