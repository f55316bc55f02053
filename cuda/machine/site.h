#pragma once

namespace sorot::inline v0::machine {

/// A line of source: where a kernel or a launcher used a wrapper. Reports name it.
struct Site {
  const char* file = "";
  int line = 0;

  /// As a default argument: the line of the call.
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) noexcept {
    return {file, line};
  }

  /// The file's name without its folders.
  constexpr const char* file_name() const noexcept {
    const char* name = file;
    for (const char* c = file; *c != '\0'; ++c) {
      if (*c == '/') name = c + 1;
    }
    return name;
  }
};

}  // namespace sorot::inline v0::machine
