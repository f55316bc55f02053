#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <thread>

#include "tests/tools/command_fixture.h"

/// Where `sorot attend` puts its results: all of its files or none, and never a temporary one left behind.
namespace sorot::tests {
namespace {

using Names = std::vector<std::string>;

class OutputFiles : public CommandTest {
 protected:
  void SetUp() override {
    CommandTest::SetUp();
    fill_npy("x.npy", DType::f32, {3, 2}, 0.5);
  }
  static std::vector<std::string> attend(std::vector<std::string> options) {
    options.insert(options.begin(), {"attend", "--q", "x.npy", "--k", "x.npy", "--v", "x.npy"});
    return options;
  }
  std::string content(const std::string& name) const {
    std::ifstream file(path(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  mode_t mode(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(stat(path(name).c_str(), &status), 0);
    return status.st_mode & 07777;
  }
};

TEST_F(OutputFiles, ReplaceWhatWasThereEvenAnInput) {
  write("o.npy", "old");
  succeed(attend({"--out", "o.npy", "--weights", "x.npy"}));
  EXPECT_EQ(read("o.npy").shape, (std::vector<std::int64_t>{3, 2}));
  EXPECT_EQ(read("x.npy").shape, (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(files(), (Names{"o.npy", "x.npy"}));
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

  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  std::string through;
  std::thread reader([&] { through = content("pipe"); });
  succeed(attend({"--out", "pipe", "--lse", "l.npy"}));
  reader.join();
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

TEST_F(OutputFiles, LeaveNoTemporaryBehindASignal) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  CommandResult result;
  // Temporaries are written first, so while it waits for the pipe's reader the one of --out exists.
  std::thread runner([&] { result = run(attend({"--out", "o.npy", "--lse", "pipe"})); });
  std::string temporary;
  while (temporary.empty()) {
    for (const std::string& name : files()) {
      if (name.starts_with(".sorot-")) temporary = name;
    }
  }
  const pid_t child = std::stoi(temporary.substr(std::string(".sorot-").size()));
  ASSERT_EQ(kill(child, SIGTERM), 0);
  runner.join();
  EXPECT_EQ(result.exit_code, 128 + SIGTERM);
  EXPECT_EQ(files(), (Names{"pipe", "x.npy"}));
}

TEST_F(OutputFiles, ReportAReaderThatIsGone) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  fill_npy("long.npy", DType::f32, {300, 2}, 0.5);  // weights of 360,000 bytes: more than a pipe holds
  std::thread reader([&] { close(open(path("pipe").c_str(), O_RDONLY)); });
  refuse({"attend", "--q", "long.npy", "--k", "long.npy", "--v", "long.npy", "--weights", "pipe", "--out", "o.npy"},
         "--weights pipe cannot be written: Broken pipe");
  reader.join();
}

}  // namespace
}  // namespace sorot::tests
