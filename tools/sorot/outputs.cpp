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

/// What a signal handler may read: paths of temporaries that exist now.
constexpr std::size_t kMostTemporaries = 8;
char temporaries[kMostTemporaries][PATH_MAX];
std::atomic<bool> temporary_exists[kMostTemporaries];
static_assert(std::atomic<bool>::is_always_lock_free);

void remove_temporaries_and_die(int signal) {
  for (std::size_t i = 0; i < kMostTemporaries; ++i) {
    if (temporary_exists[i]) unlink(temporaries[i]);
  }
  raise(signal);  // SA_RESETHAND: the default action, which ends the process
}

constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP};

void handle_signals() {
  struct sigaction action {};
  action.sa_handler = remove_temporaries_and_die;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int signal : kSignals) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);  // nohup stays in force
  }
}

/// Holds signals back while a temporary comes into being: it must not exist without being remembered.
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

void remember(const std::string& path) {
  for (std::size_t i = 0; i < kMostTemporaries; ++i) {
    if (temporary_exists[i] || path.size() >= PATH_MAX) continue;
    path.copy(temporaries[i], path.size());
    temporaries[i][path.size()] = '\0';
    temporary_exists[i] = true;
    return;
  }
}

void forget(const std::string& path) {
  for (std::size_t i = 0; i < kMostTemporaries; ++i) {
    if (temporary_exists[i] && path == temporaries[i]) temporary_exists[i] = false;
  }
}

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

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

/// True for the same directory entry, however the paths are spelled.
bool same_entry(const std::string& a, const std::string& b) {
  struct stat of_a {};
  struct stat of_b {};
  if (stat(parent_of(a).c_str(), &of_a) != 0 || stat(parent_of(b).c_str(), &of_b) != 0) return false;
  return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino && base_of(a) == base_of(b);
}

}  // namespace

Outputs::~Outputs() {
  for (const Target& target : targets_) {
    if (target.temporary.empty()) continue;
    unlink(target.temporary.c_str());
    forget(target.temporary);
  }
}

void Outputs::claim(std::string_view option, const std::string& path) {
  Target target{fmt::format("{} {}", option, path), std::string(option), path, {}, {}, false};
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
    if (stat(target.directory.c_str(), &status) != 0) {
      refuse("{} cannot be written: directory {}: {}", target.name, target.directory, std::strerror(errno));
    }
    if (!S_ISDIR(status.st_mode)) refuse("{} cannot be written: {} is no directory", target.name, target.directory);
    if (access(target.directory.c_str(), W_OK | X_OK) != 0) {
      refuse("{} cannot be written: directory {}: {}", target.name, target.directory, std::strerror(errno));
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
        const int descriptor = open(target->path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (descriptor < 0) refuse_to_write(target->name);
        fill(target->name, descriptor, content);
      } else {
        write_temporary(*target, content);
      }
    }
  }
}

void Outputs::commit() {
  std::vector<const Target*> done;
  for (Target& target : targets_) {
    if (target.direct) continue;
    if (std::rename(target.temporary.c_str(), target.path.c_str()) != 0) {
      const int error = errno;
      for (const Target* renamed : done) unlink(renamed->path.c_str());  // all or none
      errno = error;
      refuse_to_write(target.name);
    }
    forget(target.temporary);
    target.temporary.clear();
    done.push_back(&target);
  }
}

}  // namespace sorot::tools
