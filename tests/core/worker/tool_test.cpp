#include "core/worker/tool.h"

#include <algorithm>
#include <cstdlib>

#include "core/base/files.h"
#include "core/base/text.h"
#include "core/base/waiting.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::worker {
namespace {

using tests::TemporaryFolder;

TEST_CASE("what a tool says comes with how it left", "[run][job]") {
  LocalLauncher launcher;
  const ToolPatience patience{"the tool"};
  const auto said =
      run_tool(launcher, {{"/bin/sh", "-c", "echo one; echo two; exit 3"}, {}}, patience);
  REQUIRE(said);
  REQUIRE(said->lines == std::vector<std::string>{"one", "two"});
  REQUIRE(said->code == 3);
  REQUIRE_FALSE(run_tool(launcher, {{"no-such-tool-anywhere"}, {}}, patience));
  REQUIRE_FALSE(run_tool(launcher, {{"/bin/sh", "-c", "kill -9 $$"}, {}}, patience));
}

TEST_CASE("a tool that hangs is waited for in words, and no longer after a Ctrl-C",
          "[run][job][waiting]") {
  std::string said;
  int interrupts = 0;
  set_waiting({[&](const std::string& text) { said += text + "\n"; }, [&] { return interrupts; }});
  LocalLauncher launcher;
  const WorkerCommand hangs{{"/bin/sh", "-c", "exec sleep 600"}, {}};
  CHECK_FALSE(run_tool(launcher, hangs, {"git", 0.05, 0.6}));
  CHECK(said == "waiting for git, for 1s at most\ngave up waiting for git\n");
  said.clear();
  const auto interrupt = [&](const std::string& text) {
    said += text + "\n";
    ++interrupts;
  };
  set_waiting({interrupt, [&] { return interrupts; }});
  CHECK(tests::error_of([&] {
          run_tool(launcher, hangs, {"git", 0.05, 600});
        }) == "error: interrupted");
  CHECK(said == "waiting for git, for 10m 00s at most\n");
  set_waiting({});
}

/// A repository with one commit, and a program that leaves a file where it was run.
struct Repository {
  Repository() {
    outside.write("spy.sh",
                  "#!/bin/sh\necho \"$0 $*\" >> " + quoted(outside / "spied") + "\ncat\n");
    fs::permissions(outside / "spy.sh", fs::perms::owner_all);
    folder.write("file", "text\n");
    git("init -q .");
    git("add file");
    commit();
  }
  static std::string quoted(const fs::path& path) { return shell_quoted(path.string()); }
  void run(const std::string& command) const {
    INFO(command);
    REQUIRE(std::system(("cd " + quoted(folder.path()) + " && ( " + command + " ) >/dev/null 2>&1")
                            .c_str()) == 0);
  }
  void git(const std::string& words) const {
    run("git -c core.fsmonitor=false -c protocol.file.allow=always -c user.email=a@b -c "
        "user.name=a " +
        words);
  }
  void commit() const { git("commit -qm x"); }
  std::string spy() const { return quoted(outside / "spy.sh"); }
  std::string revision() const {
    LocalLauncher launcher;
    return git_revision(launcher, folder.path());
  }
  bool spied() const { return path_exists(outside / "spied"); }

  TemporaryFolder folder, outside;
};

TEST_CASE("a revision is the commit, marked where files differ from it", "[run][job]") {
  LocalLauncher launcher;
  const TemporaryFolder none;
  REQUIRE(git_revision(launcher, none.path()).empty());
  const Repository repository;
  const std::string clean = repository.revision();
  REQUIRE(clean.size() == 12);
  REQUIRE(clean.find_first_not_of("0123456789abcdef") == std::string::npos);
  repository.run("sleep 0.01; touch file");
  REQUIRE(repository.revision() == clean);
  repository.folder.write("new", "not tracked");
  REQUIRE(repository.revision() == clean);
  repository.folder.write("file", "more\n");
  REQUIRE(repository.revision() == clean + "-dirty");
  fs::create_directory(repository.folder / "inner");
  REQUIRE(git_revision(launcher, repository.folder / "inner") == clean + "-dirty");
}

TEST_CASE("a revision is that of the folder's repository, whatever git is told of another",
          "[run][job]") {
  const Repository repository, other;
  other.folder.write("file", "of the other\n");
  other.git("commit -qam other");
  const std::string own = repository.revision();
  REQUIRE(own != other.revision());
  const std::pair<const char*, fs::path> told[] = {{"GIT_DIR", other.folder / ".git"},
                                                   {"GIT_INDEX_FILE", other.folder / ".git/index"},
                                                   {"GIT_WORK_TREE", other.folder.path()}};
  for (const auto& [name, value] : told) ::setenv(name, value.c_str(), 1);
  const std::string revision = repository.revision();
  for (const auto& [name, value] : told) ::unsetenv(name);
  CHECK(revision == own);
}

TEST_CASE("a revision runs no program that the repository names", "[run][job][hostile]") {
  const Repository repository;
  const std::string& spy = repository.spy();
  repository.git("config core.fsmonitor " + spy);
  repository.git("config core.pager " + spy);
  repository.git("config diff.external " + spy);
  repository.git("config diff.x.textconv " + spy);
  repository.git("config diff.x.command " + spy);
  for (const char* key : {"clean", "process", "smudge"})
    repository.git(std::string("config filter.x.") + key + " " + spy);
  repository.git("config filter.x.required true");
  repository.git("config filter.Y.clean " + spy);
  repository.run("mkdir -p hooks && cp " + spy + " hooks/post-index-change");
  repository.git("config core.hooksPath hooks");
  repository.folder.write(".gitattributes", "* filter=x diff=x\nother filter=Y\n");
  repository.folder.write("file", "text\nmore\n");
  CHECK(ends_with(repository.revision(), "-dirty"));
  CHECK_FALSE(repository.spied());
  // It would be run: the repository is one that attacks.
  repository.run("git -C . status");
  CHECK(repository.spied());
}

TEST_CASE("a filter whose name hides from options keeps the revision unknown",
          "[run][job][hostile]") {
  const Repository repository;
  const std::string& spy = repository.spy();
  repository.run("printf '[filter \"a=b\"]\\n\\tclean = %s\\n' " + spy + " >> .git/config");
  repository.folder.write(".gitattributes", "* filter=a=b\n");
  repository.folder.write("file", "other text\n");
  CHECK(repository.revision().empty());
  CHECK_FALSE(repository.spied());
}

TEST_CASE("no filter is run, whatever its name is", "[run][job][hostile]") {
  // As printf and git's config write them.
  const std::string name = GENERATE(as<std::string>(),
                                    "a\\377b",
                                    "\\303\\251",
                                    "a\\001b",
                                    "a\\033b",
                                    "",
                                    "A",
                                    "a b",
                                    "a.b",
                                    "-x",
                                    "a;b",
                                    "a\\\\\\\\b",
                                    "a\\\\\"b");
  CAPTURE(name);
  const Repository repository;
  repository.run("printf '[filter \"" + name + "\"]\\n\\tclean = %s\\n\\trequired\\n' " +
                 repository.spy() + " >> .git/config");
  repository.run(
      "export LC_ALL=C; git config --list --name-only | grep -a '^filter.*clean$' | "
      "sed 's/^filter\\.//; s/\\.clean$//' > .git/name");
  std::string attribute = read_file(repository.folder / ".git/name");
  attribute.resize(attribute.find('\n'));
  repository.run("mkdir -p .git/info");
  repository.folder.write(".git/info/attributes", "* filter=" + attribute + "\n");
  repository.folder.write("file", "other text\n");
  const std::string revision = repository.revision();
  CHECK_FALSE(repository.spied());
  const bool is_plain = std::all_of(
      attribute.begin(), attribute.end(), [](char byte) { return byte >= ' ' && byte <= '~'; });
  CHECK(revision.empty() != is_plain);
  // It would be run, where attributes can name it at all.
  if (attribute.find(' ') == std::string::npos && !attribute.empty()) {
    repository.run("git diff --quiet || true");
    CHECK(repository.spied());
  }
}

TEST_CASE("no filter of a file that the config includes is run", "[run][job][hostile]") {
  const Repository repository;
  repository.run("printf '[filter \"x\"]\\n\\tclean = %s\\n' " + repository.spy() + " > .git/more");
  SECTION("included") { repository.git("config include.path more"); }
  SECTION("included on a condition") {
    repository.git("config includeIf.onbranch:\"**\".path more");
  }
  SECTION("of a worktree") {
    repository.git("config extensions.worktreeConfig true");
    repository.run("mv .git/more .git/config.worktree");
  }
  repository.folder.write(".gitattributes", "* filter=x\n");
  repository.folder.write("file", "other text\n");
  CHECK(ends_with(repository.revision(), "-dirty"));
  CHECK_FALSE(repository.spied());
  repository.run("git diff --quiet || true");
  CHECK(repository.spied());
}

TEST_CASE("a branch may have any name, and the revision is known", "[run][job]") {
  const Repository repository;
  repository.git("config branch.gr\303\266\303\237e.remote origin");
  CHECK(repository.revision().size() == 12);
}

TEST_CASE("a submodule's config is not followed", "[run][job][hostile]") {
  const Repository inner, outer;
  outer.git("submodule add " + Repository::quoted(inner.folder.path()) + " inner");
  outer.commit();
  outer.run("git -C inner config core.fsmonitor " + outer.spy());
  outer.run("git -C inner config filter.x.clean " + outer.spy());
  outer.folder.write("inner/.gitattributes", "* filter=x\n");
  outer.folder.write("inner/file", "other\n");
  CHECK(outer.revision().size() == 12);
  CHECK_FALSE(outer.spied());
}

TEST_CASE("a bare repository that lies in the folder as files is none", "[run][job][hostile]") {
  const Repository bare;
  bare.git("config core.fsmonitor " + bare.spy());
  bare.git("config core.worktree .");  // where the files of .git will lie
  const TemporaryFolder workspace;
  for (const char* name : {"HEAD", "config", "objects", "refs", "index"})
    fs::copy(bare.folder / ".git" / name, workspace / name, fs::copy_options::recursive);
  workspace.write("file", "other\n");
  LocalLauncher launcher;
  CHECK(git_revision(launcher, workspace.path()).empty());
  CHECK_FALSE(bare.spied());
}

TEST_CASE("what a partial clone lacks is not fetched", "[run][job][hostile]") {
  const Repository repository;
  repository.git("config core.repositoryFormatVersion 1");
  repository.git("config extensions.partialClone origin");
  repository.git("config remote.origin.url " +
                 shell_quoted("ext::" + (repository.outside / "spy.sh").string() + " x"));
  repository.git("config remote.origin.promisor true");
  repository.git("config protocol.ext.allow always");
  repository.folder.write("file", "other\n");
  // The commit stays, its tree and file go.
  repository.run(
      "for o in 'HEAD^{tree}' HEAD:file; do h=$(git rev-parse \"$o\"); "
      "echo $h >> .git/gone; done; for h in $(cat .git/gone); do "
      "rm -f .git/objects/$(echo $h | cut -c1-2)/$(echo $h | cut -c3-); done");
  CHECK(repository.revision().empty());
  CHECK_FALSE(repository.spied());
}

}  // namespace
}  // namespace forge::worker
