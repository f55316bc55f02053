#include "tools/sorot/outputs.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "tools/sorot/failure.h"

namespace sorot::tools {
namespace {

/// What takes back one step, kept where a signal handler may read it: `path` is removed or, if it holds a file that
/// was set aside, goes back to `home`.
struct Undo {
  char path[PATH_MAX];
  char home[PATH_MAX];  ///< empty: remove
  std::atomic<bool> pending;
};
constexpr std::size_t kMostUndos = 8;  // one for each option that names an output, and one while it changes
Undo undos[kMostUndos];
static_assert(std::atomic<bool>::is_always_lock_free);

/// Safe in a signal handler.
void undo_all() {
  for (Undo& undo : undos) {
    if (!undo.pending) continue;
    // Between two names of one file rename() does nothing, and the second name is still there to be removed.
    if (undo.home[0] == '\0' || std::rename(undo.path, undo.home) == 0) unlink(undo.path);
    undo.pending = false;
  }
}

void undo_and_die(int signal) {
  undo_all();
  raise(signal);  // SA_RESETHAND: the default action, which ends the process
}

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU};

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = undo_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kSignals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup stays in force
  }
}

/// Holds signals back while files come, go or change their names: none may do so without being remembered.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t blocked;
    sigemptyset(&blocked);
    for (const int signal : kSignals) sigaddset(&blocked, signal);
    sigprocmask(SIG_BLOCK, &blocked, &before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;
  ~SignalsBlocked() { sigprocmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_;
};

void remember(const std::string& path, const std::string& home = "") {
  for (Undo& undo : undos) {
    if (undo.pending) continue;
    // The system took both as paths, so they fit.
    undo.path[path.copy(undo.path, PATH_MAX - 1)] = '\0';
    undo.home[home.copy(undo.home, PATH_MAX - 1)] = '\0';
    undo.pending = true;
    return;
  }
}

void forget(const std::string& path) {
  for (Undo& undo : undos) {
    if (undo.pending && path == undo.path) undo.pending = false;
  }
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// Where a file waits that the temporary replaces, until all outputs are in place.
std::string old_name(const std::string& temporary) { return temporary + ".old"; }

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// The path behind a chain of symbolic links, of which the last may lead to nothing yet.
std::string follow_links(const std::string& name, std::string path) {
  constexpr int kMostLinks = 40;  // as Linux
  for (int i = 0; i < kMostLinks; ++i) {
    char text[PATH_MAX];
    const ssize_t length = readlink(path.c_str(), text, sizeof text);
    if (length < 0) return path;  // no link
    const std::string link(text, static_cast<std::size_t>(length));
    path = link.starts_with('/') ? link : parent_of(path) + '/' + link;
  }
  refuse("{} cannot be written: too many symbolic links", name);
}

[[noreturn]] void refuse_to_write(const std::string& name) {
  refuse("{} cannot be written: {}", name, std::strerror(errno));
}

void write_all(const std::string& name, int descriptor, const void* data, std::size_t count) {
  const char* from = static_cast<const char*>(data);
  while (count > 0) {
    constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux writes at most 2 GiB at once
    const ssize_t put = write(descriptor, from, std::min(count, kMost));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) refuse_to_write(name);
    from += put;
    count -= static_cast<std::size_t>(put);
  }
}

/// Writes and closes. Some file systems say only at the close that the disk is full.
void fill(const std::string& name, int descriptor, const Outputs::Content& content) {
  try {
    write_all(name, descriptor, content.header.data(), content.header.size());
    write_all(name, descriptor, content.data.data(), content.data.size());
  } catch (...) {
    close(descriptor);
    throw;
  }
  if (close(descriptor) != 0) refuse_to_write(name);
}

/// Opens what is no regular file. A pipe that nobody reads would keep open() waiting for ever.
int open_direct(const std::string& name, const std::string& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat status {};
  if (descriptor < 0 && errno == ENXIO && stat(path.c_str(), &status) == 0 && S_ISFIFO(status.st_mode)) {
    refuse("{} cannot be written: no process reads from this pipe", name);
  }
  if (descriptor < 0) refuse_to_write(name);
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) & ~O_NONBLOCK);
  return descriptor;
}

/// Gives a file that is about to be replaced a second name, `aside`, to come back from. False if there is no file.
bool set_aside(const std::string& name, const std::string& path, const std::string& aside) {
  struct stat status {};
  if (lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    refuse_to_write(name);
  }
  if (!S_ISREG(status.st_mode)) refuse("{} cannot be written: it is no regular file any more", name);
  // A link, so that there is a file at every moment; some file systems have none.
  if (link(path.c_str(), aside.c_str()) == 0) return true;
  if (errno != EEXIST && std::rename(path.c_str(), aside.c_str()) == 0) return true;
  if (errno == EBUSY) refuse("{} cannot be written: it is a mount point, which no file can replace", name);
  refuse_to_write(name);
}

/// True for the same directory entry, however the paths are spelled.
bool same_entry(const std::string& a, const std::string& b) {
  struct stat of_a {};
  struct stat of_b {};
  if (stat(parent_of(a).c_str(), &of_a) != 0 || stat(parent_of(b).c_str(), &of_b) != 0) return false;
  return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino && base_of(a) == base_of(b);
}

}  // namespace

Outputs::~Outputs() {
  const SignalsBlocked blocked;
  undo_all();
}

void Outputs::claim(std::string_view option, const std::string& path) {
  Target target{fmt::format("{} {}", option, path), std::string(option), path, {}, {}, {}, false};
  struct stat status {};
  const bool exists = stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) refuse_to_write(target.name);
  if ((exists && S_ISDIR(status.st_mode)) || path.ends_with('/')) {
    refuse("{} is a directory, expected the name of a file", target.name);
  }
  target.direct = exists && !S_ISREG(status.st_mode);
  if (!target.direct) target.path = follow_links(target.name, path);
  target.directory = parent_of(target.path);

  if (exists && access(target.path.c_str(), W_OK) != 0) refuse_to_write(target.name);
  if (!target.direct) {
    const uid_t owner = status.st_uid;
    if (stat(target.directory.c_str(), &status) != 0) {
      refuse("{} cannot be written: directory {}: {}", target.name, target.directory, std::strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) refuse("{} cannot be written: {} is no directory", target.name, target.directory);
    if (access(target.directory.c_str(), W_OK | X_OK) != 0) {
      refuse("{} cannot be written: directory {}: {}", target.name, target.directory, std::strerror(errno));
    }
    const uid_t user = geteuid();
    if (exists && (status.st_mode & S_ISVTX) != 0 && user != 0 && user != owner && user != status.st_uid) {
      refuse("{} cannot be written: in directory {} only its owner may replace it", target.name, target.directory);
    }
  }
  for (const Target& other : targets_) {
    if (!target.direct && same_entry(other.path, target.path))
      refuse("{} is the same file as {}", target.name, other.name);
  }
  targets_.push_back(std::move(target));
}

void Outputs::write_temporary(Target& target, const Content& content) {
  int descriptor = -1;
  std::string path;
  {
    const SignalsBlocked blocked;
    for (int attempt = 0; descriptor < 0; ++attempt) {
      path = fmt::format("{}/.sorot-{}-{}.tmp", target.directory, getpid(), attempt);
      if (access(old_name(path).c_str(), F_OK) == 0) continue;  // a killed process of this number left it
      // 0666 and not mkstemp's 0600: the umask decides, as for any other new file.
      descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor < 0 && errno != EEXIST) refuse_to_write(target.name);
    }
    remember(path);
  }
  target.temporary = path;
  struct stat status {};
  if (stat(target.path.c_str(), &status) == 0) {
    (void)fchmod(descriptor, status.st_mode & 0777);  // a file that is replaced keeps its permissions
  }
  fill(target.name, descriptor, content);
}

void Outputs::stage(std::span<const Content> contents) {
  handle_signals();
  for (const bool direct : {false, true}) {
    for (const Content& content : contents) {
      const auto target =
          std::find_if(targets_.begin(), targets_.end(), [&](const Target& t) { return t.option == content.option; });
      if (target == targets_.end() || target->direct != direct) continue;
      if (direct) {
        fill(target->name, open_direct(target->name, target->path), content);
      } else {
        write_temporary(*target, content);
      }
    }
  }
}

void Outputs::publish() {
  const SignalsBlocked blocked;
  for (Target& target : targets_) {
    if (target.direct) continue;
    const std::string aside = old_name(target.temporary);
    if (set_aside(target.name, target.path, aside)) {
      target.aside = aside;
      remember(aside, target.path);
    }
    if (std::rename(target.temporary.c_str(), target.path.c_str()) != 0) refuse_to_write(target.name);
    forget(target.temporary);
    if (target.aside.empty()) remember(target.path);
  }
}

void Outputs::commit() {
  const SignalsBlocked blocked;
  for (const Target& target : targets_) {
    if (target.direct) continue;
    forget(target.aside.empty() ? target.path : target.aside);
    if (!target.aside.empty()) unlink(target.aside.c_str());
  }
}

}  // namespace sorot::tools
