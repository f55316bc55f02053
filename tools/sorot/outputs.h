#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sorot::tools {

/// The files a command writes: all of them, complete, or none. Each is written under a temporary name beside its
/// target and renamed once every one is on disk; a file that is replaced is set aside until all is done. A signal or a
/// Failure before commit() puts everything back. A target that is no regular file (/dev/null, a pipe) is written
/// straight into, last. At most one object at a time: a signal handler must find what to put back.
///
///   outputs.claim(...)     before the computation: refuses what cannot be written
///   outputs.stage(...)     writes
///   outputs.publish()      renames
///   outputs.commit()       removes what was set aside: now it is final
class Outputs {
 public:
  Outputs() = default;
  Outputs(const Outputs&) = delete;
  Outputs& operator=(const Outputs&) = delete;
  ~Outputs();

  /// Takes `path` as a target; `option` is what asked for it: "--out".
  void claim(std::string_view option, const std::string& path);

  /// What stage() writes to the target of an option, one behind the other. Nothing is copied.
  struct Content {
    std::string_view option;
    std::string_view header;
    std::span<const std::byte> data;
  };
  void stage(std::span<const Content> contents);

  void publish();
  void commit();

 private:
  struct Target {
    std::string name;       ///< for messages: "--out a.npy"
    std::string option;     ///< "--out"
    std::string path;       ///< behind all symbolic links
    std::string directory;  ///< where the temporary goes
    std::string temporary;  ///< where it is until publish()
    std::string aside;      ///< where the file is that it replaces; empty: it replaces none
    bool direct = false;    ///< no regular file: written straight into
  };
  void write_temporary(Target& target, const Content& content);
  std::vector<Target> targets_;
};

}  // namespace sorot::tools
