#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <thread>

#include "tests/tools/command_fixture.h"

/// Where `sorot attend` puts its results: all of its files or none, and never a temporary one left behind.
namespace sorot::tests {
namespace {

using Names = std::vector<std::string>;

class OutputFiles : public AttendCommandTest {
 protected:
  std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  mode_t mode(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(stat(path(name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }
  /// The reader's end of a new pipe in the folder.
  int make_pipe(const std::string& name) const {
    EXPECT_EQ(mkfifo(path(name).c_str(), 0600), 0);
    return open(path(name).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  /// Runs attend with weights of 360,000 bytes, more than a pipe holds, into a new pipe. While it waits for the pipe's
  /// reader, every temporary is complete; then `meanwhile` is called with the process, and the pipe is read empty.
  template <class Meanwhile>
  CommandResult run_halted(std::vector<std::string> options, Meanwhile meanwhile,
                           const char* stdout_path = nullptr) const {
    fill_npy("long.npy", DType::f32, {300, 2}, 0.5);
    options.insert(options.begin(), {"attend", "--q", "long.npy", "--k", "long.npy", "--v", "long.npy"});
    options.insert(options.end(), {"--weights", "pipe"});
    const int pipe = make_pipe("pipe");
    CommandResult result;
    std::thread runner([&] { result = run(options, stdout_path); });
    pollfd waiting{pipe, POLLIN, 0};
    EXPECT_EQ(poll(&waiting, 1, 30000), 1);
    pid_t process = 0;
    for (const std::string& name : files()) {
      if (name.starts_with(".sorot-")) process = std::stoi(name.substr(std::string(".sorot-").size()));
    }
    EXPECT_GT(process, 0);
    meanwhile(process);
    fcntl(pipe, F_SETFL, 0);
    char some[4096];
    while (::read(pipe, some, sizeof some) > 0) continue;
    runner.join();
    close(pipe);
    return result;
  }
};

TEST_F(OutputFiles, ReplaceWhatWasThereEvenAnInput) {
  write("o.npy", "old");
  succeed(attend({"--out", "o.npy", "--weights", "x.npy"}));
  EXPECT_EQ(read("o.npy").shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(read("x.npy").shape, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(files(), (Names{"o.npy", "x.npy"}));
}

/// A killed process leaves names behind, and in a container the next one has the same number.
TEST_F(OutputFiles, AreWrittenDespiteNamesThatAKilledProcessLeft) {
  write("out.npy", "before");
  for (pid_t process = getpid(); process < getpid() + 300; ++process) {
    write(".sorot-" + std::to_string(process) + "-0.tmp", "stale");
    write(".sorot-" + std::to_string(process) + "-1.tmp.old", "stale");
  }
  succeed(attend({"--out", "out.npy"}));
  EXPECT_NE(content("out.npy"), "before");
}

TEST_F(OutputFiles, FollowTheUmaskOrKeepTheirMode) {
  write("old.npy", "old");
  ASSERT_EQ(chmod(path("old.npy").c_str(), 0600), 0);
  const mode_t before = umask(027);
  succeed(attend({"--out", "new.npy", "--lse", "old.npy"}));
  umask(before);
  EXPECT_EQ(mode("new.npy"), 0640U);
  EXPECT_EQ(mode("old.npy"), 0600U);
}

TEST_F(OutputFiles, AreWrittenThroughLinks) {
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  write("d/target.npy", "old");
  ASSERT_EQ(symlink("d/middle.npy", path("link.npy").c_str()), 0);
  ASSERT_EQ(symlink("target.npy", path("d/middle.npy").c_str()), 0);
  ASSERT_EQ(symlink("d/fresh.npy", path("dangling.npy").c_str()), 0);
  succeed(attend({"--out", "link.npy", "--lse", "dangling.npy"}));
  EXPECT_TRUE(std::filesystem::is_symlink(path("link.npy")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("d/middle.npy")));
  EXPECT_TRUE(std::filesystem::is_symlink(path("dangling.npy")));
  EXPECT_FALSE(std::filesystem::is_symlink(path("d/target.npy")));
  EXPECT_EQ(read("d/target.npy").shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(read("d/fresh.npy").shape, (std::vector<std::int64_t>{3}));
  ASSERT_EQ(symlink("loop.npy", path("loop.npy").c_str()), 0);
  refuse(attend({"--out", "loop.npy"}), "--out loop.npy cannot be written: Too many levels of symbolic links");
}

TEST_F(OutputFiles, ThatAreNoRegularFilesAreWrittenInto) {
  succeed(attend({"--out", "/dev/null", "--lse", "/dev/null"}));
  struct stat status {};
  ASSERT_EQ(stat("/dev/null", &status), 0);
  EXPECT_TRUE(S_ISCHR(status.st_mode));

  const int pipe = make_pipe("pipe");
  succeed(attend({"--out", "pipe", "--lse", "l.npy"}));
  std::string through(4096, '?');
  through.resize(static_cast<std::size_t>(std::max(ssize_t{0}, ::read(pipe, through.data(), through.size()))));
  close(pipe);
  succeed(attend({"--out", "o.npy"}));
  EXPECT_EQ(through, content("o.npy"));
  EXPECT_TRUE(std::filesystem::is_fifo(path("pipe")));
}

TEST_F(OutputFiles, ThatCannotBeAreRefusedBeforeTheComputation) {
  refuse(attend({"--out", "."}), "--out . is a directory");
  refuse(attend({"--out", "new/"}), "--out new/ is a directory");
  refuse(attend({"--lse", "no/l.npy"}), "--lse no/l.npy cannot be written: directory no: No such file or directory");
  refuse(attend({"--weights", "x.npy/w.npy"}), "--weights x.npy/w.npy cannot be written: Not a directory");
  refuse(attend({"--out", std::string(300, 'o')}), "File name too long");
  refuse({"attend", "--q", "none", "--k", "none", "--v", "none", "--out", "no/o.npy"}, "directory no");
}

TEST_F(OutputFiles, ThatAreTheSameAreRefused) {
  ASSERT_EQ(mkdir(path("d").c_str(), 0755), 0);
  ASSERT_EQ(symlink("o.npy", path("link.npy").c_str()), 0);
  refuse(attend({"--out", "o.npy", "--lse", "o.npy"}), "--lse o.npy is the same file as --out o.npy");
  refuse(attend({"--out", "o.npy", "--lse", "./d/../o.npy"}), "is the same file as --out o.npy");
  refuse(attend({"--out", "o.npy", "--weights", "link.npy"}), "is the same file as --out o.npy");
}

TEST_F(OutputFiles, StayAwayIfOneOfThemFails) {
  write("old.npy", "old");
  refuse(attend({"--out", "old.npy", "--lse", "l.npy", "--weights", "/dev/full"}),
         "--weights /dev/full cannot be written: No space left on device");
  EXPECT_EQ(content("old.npy"), "old");
}

TEST_F(OutputFiles, ThatWereThereComeBackIfALaterOneFails) {
  write("old.npy", "old");
  write("l.npy", "old");
  const CommandResult result = run_halted({"--json", "--out", "old.npy", "--lse", "l.npy"}, [&](pid_t) {
    unlink(path("l.npy").c_str());
    mkdir(path("l.npy").c_str(), 0755);
  });
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "sorot: --lse l.npy cannot be written: it is no regular file any more\n");
  EXPECT_EQ(content("old.npy"), "old");
  EXPECT_EQ(files(), (Names{"l.npy", "long.npy", "old.npy", "pipe", "x.npy"}));
}

TEST_F(OutputFiles, ThatAreMountPointsAreRefused) {
  write("old.npy", "old");
  write("mounted.npy", "mounted");
  bool mounted = false;
  // Mounts belong to a thread and the processes it starts.
  std::thread([&] {
    mounted = unshare(CLONE_NEWNS) == 0 && mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
              mount(path("mounted.npy").c_str(), path("mounted.npy").c_str(), nullptr, MS_BIND, nullptr) == 0;
    if (!mounted) return;
    refuse(attend({"--json", "--out", "old.npy", "--weights", "new.npy", "--lse", "mounted.npy"}),
           "--lse mounted.npy cannot be written: it is a mount point");
  }).join();
  if (!mounted) GTEST_SKIP() << "mounting needs root";
  EXPECT_EQ(content("old.npy"), "old");
  EXPECT_EQ(content("mounted.npy"), "mounted");
}

TEST_F(OutputFiles, ThatWereThereComeBackIfTheReportFails) {
  write("old.npy", "old");
  EXPECT_EQ(run(attend({"--json", "--out", "old.npy", "--lse", "l.npy"}), "/dev/full").exit_code, 2);
  EXPECT_EQ(content("old.npy"), "old");
  EXPECT_EQ(files(), (Names{"old.npy", "x.npy"}));
}

TEST_F(OutputFiles, LeaveNoTemporaryBehindASignal) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU}) {
    write("old.npy", "old");
    const CommandResult result =
        run_halted({"--out", "old.npy", "--lse", "l.npy"}, [&](pid_t process) { kill(process, signal); });
    EXPECT_EQ(result.exit_code, 128 + signal);
    EXPECT_EQ(content("old.npy"), "old");
    unlink(path("pipe").c_str());
    EXPECT_EQ(files(), (Names{"long.npy", "old.npy", "x.npy"}));
  }
}

TEST_F(OutputFiles, ThatWereThereComeBackAtASignal) {
  write("old.npy", "old");
  // Renamed already, it waits for room to print the report.
  const int report = make_pipe("report");
  const int full = open(path("report").c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  const std::string zeros(4096, '\0');
  while (::write(full, zeros.data(), zeros.size()) > 0) continue;
  CommandResult result;
  std::thread runner([&] {
    result = run(attend({"--json", "--out", "old.npy", "--lse", "l.npy"}), path("report").c_str());
  });
  std::string aside;
  for (int i = 0; i < 3000 && (aside.empty() || !std::filesystem::exists(path("l.npy"))); ++i) {
    usleep(10000);
    for (const std::string& name : files()) {
      if (name.ends_with(".old")) aside = name;
    }
  }
  EXPECT_NE(content("old.npy"), "old");
  if (!aside.empty()) kill(std::stoi(aside.substr(std::string(".sorot-").size())), SIGTERM);
  runner.join();
  close(full);
  close(report);
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(content("old.npy"), "old");
  EXPECT_EQ(files(), (Names{"old.npy", "report", "x.npy"}));
}

TEST_F(OutputFiles, ThatMayNotGrowSoLargeAreRefused) {
  fill_npy("long.npy", DType::f32, {300, 2}, 0.5);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{65536, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);  // of this process too, which writes less meanwhile
  refuse({"attend", "--q", "long.npy", "--k", "long.npy", "--v", "long.npy", "--weights", "w.npy", "--out", "o.npy"},
         "--weights w.npy cannot be written: File too large");
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(OutputFiles, ReportAReaderThatIsMissingOrGone) {
  const int pipe = make_pipe("pipe");
  fill_npy("long.npy", DType::f32, {300, 2}, 0.5);  // weights of 360,000 bytes: more than a pipe holds
  const std::vector<std::string> arguments = {"attend",   "--q",       "long.npy", "--k",   "long.npy", "--v",
                                              "long.npy", "--weights", "pipe",     "--out", "o.npy"};
  std::thread reader([&] {
    pollfd waiting{pipe, POLLIN, 0};
    poll(&waiting, 1, 30000);
    close(pipe);
  });
  refuse(arguments, "--weights pipe cannot be written: Broken pipe");
  reader.join();
  refuse(arguments, "--weights pipe cannot be written: no process reads from this pipe");
}

}  // namespace
}  // namespace sorot::tests
