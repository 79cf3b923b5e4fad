#include "core/project/workspace_id.h"

#include <sys/stat.h>
#include <unistd.h>

#include "core/base/files.h"
#include "tests/support/catch.h"
#include "tests/support/other_user.h"
#include "tests/support/support.h"

namespace forge::project {
namespace {

TEST_CASE("a workspace keeps its id where it is moved, and a copy gets one of its own",
          "[project]") {
  const tests::TemporaryFolder folder;
  folder.write("first/forge_workspace/workspace.yaml", "");
  CHECK(project::workspace_id(folder / "first").empty());
  const std::string id = project::made_workspace_id(folder / "first");
  CHECK(id.size() == 12);
  CHECK(project::made_workspace_id(folder / "first") == id);
  std::filesystem::copy(
      folder / "first", folder / "copy", std::filesystem::copy_options::recursive);
  CHECK(project::workspace_id(folder / "copy").empty());
  const std::string other = project::made_workspace_id(folder / "copy");
  CHECK(other.size() == 12);
  CHECK(other != id);
  std::filesystem::rename(folder / "first", folder / "moved");
  CHECK(project::workspace_id(folder / "moved") == id);
  std::filesystem::create_directory_symlink(folder / "moved", folder / "link");
  CHECK(project::workspace_id(folder / "link") == id);
  for (const char* text : {"", "x", "../x 1", "0123456789ab 1"}) {
    write_file_atomic(project::workspace_id_file(folder / "moved"), text);
    CHECK(project::workspace_id(folder / "moved").empty());
  }
  // A word that somebody wrote there.
  write_file_atomic(project::workspace_id_file(folder / "moved"), "0123456789ab\n");
  CHECK(project::workspace_id(folder / "moved") == "0123456789ab");
  CHECK(project::made_workspace_id(folder / "nowhere").empty());
  CHECK_FALSE(path_exists(folder / "nowhere"));
}

TEST_CASE("a workspace that was copied to another disk is the one that is gone", "[project]") {
  using project::WorkspaceRelation;
  const tests::TemporaryFolder folder;
  folder.write("first/forge_workspace/workspace.yaml", "");
  folder.write("first/p/meta.yaml", "");
  const std::string first = (folder / "first").string();
  const std::string id = project::made_workspace_id(first);
  std::filesystem::copy(first, folder / "copy", std::filesystem::copy_options::recursive);
  const auto relation = [&](const char* name) {
    return project::relation_of({first, id}, folder / name, "p");
  };
  CHECK(relation("copy") == WorkspaceRelation::another);  // which is there
  std::filesystem::remove_all(first);
  CHECK(relation("copy") == WorkspaceRelation::copied);
  REQUIRE(project::made_workspace_id(folder / "copy") != id);
  CHECK(relation("copy") == WorkspaceRelation::copied);
  // A copy of the one that took its place, beside that, has runs of its own.
  std::filesystem::copy(
      folder / "copy", folder / "again", std::filesystem::copy_options::recursive);
  project::made_workspace_id(folder / "again");
  CHECK(relation("again") == WorkspaceRelation::away);
  folder.write("other/forge_workspace/workspace.yaml", "");
  project::made_workspace_id(folder / "other");
  CHECK(relation("other") == WorkspaceRelation::away);
}

TEST_CASE("a copy that was made beside a workspace never takes its place", "[project]") {
  using project::WorkspaceRelation;
  const tests::TemporaryFolder folder;
  folder.write("first/forge_workspace/workspace.yaml", "");
  folder.write("first/p/meta.yaml", "");
  // It was moved since it got its id.
  const std::string id = project::made_workspace_id(folder / "first");
  const std::string moved = (folder / "moved").string();
  std::filesystem::rename(folder / "first", moved);
  REQUIRE(project::made_workspace_id(moved) == id);
  std::filesystem::copy(moved, folder / "copy", std::filesystem::copy_options::recursive);
  project::made_workspace_id(folder / "copy");
  std::filesystem::rename(moved, folder / "away");
  const auto relation = [&](const char* name) {
    return project::relation_of({moved, id}, folder / name, "p");
  };
  CHECK(relation("copy") == WorkspaceRelation::away);
  CHECK(relation("away") == WorkspaceRelation::same);
}

TEST_CASE("a copy that a workspace was restored from is another one", "[project]") {
  using project::WorkspaceRelation;
  const tests::TemporaryFolder folder;
  const std::string first = (folder / "first").string();
  folder.write("first/forge_workspace/workspace.yaml", "");
  folder.write("first/p/meta.yaml", "");
  const std::string id = project::made_workspace_id(first);
  const auto copy = [&](const std::filesystem::path& from, const std::filesystem::path& to) {
    std::filesystem::copy(from, to, std::filesystem::copy_options::recursive);
  };
  const auto relation = [&] { return project::relation_of({first, id}, folder / "copy", "p"); };
  copy(first, folder / "copy");
  std::filesystem::remove_all(first);
  copy(folder / "copy", first);
  REQUIRE_FALSE(project::made_workspace_id(first).empty());
  CHECK(relation() == WorkspaceRelation::another);
  REQUIRE_FALSE(project::made_workspace_id(folder / "copy").empty());
  CHECK(relation() == WorkspaceRelation::another);
}

TEST_CASE("workspaces of two installed versions are one, and others of that name are not",
          "[project]") {
  using project::WorkspaceRelation;
  const tests::TemporaryFolder folder;
  for (const char* prefix : {"1", "2", "disk"})
    folder.write(std::string(prefix) + "/share/forge/p/meta.yaml", "");
  for (const char* prefix : {"1", "2"}) folder.write(std::string(prefix) + "/bin/forge", "");
  const auto relation = [&](const char* recorded, const char* here) {
    return project::relation_of(
        {(folder / recorded / "share/forge").string(), ""}, folder / here / "share/forge", "p");
  };
  CHECK(relation("1", "2") == WorkspaceRelation::same);
  CHECK(relation("removed", "2") == WorkspaceRelation::same);
  CHECK(relation("1", "disk") == WorkspaceRelation::another);
  CHECK(relation("disk", "1") == WorkspaceRelation::another);
}

TEST_CASE("a workspace whose id somebody wrote is told from its copies", "[project]") {
  using project::WorkspaceRelation;
  const tests::TemporaryFolder folder;
  const std::string first = (folder / "first").string();
  folder.write("first/p/meta.yaml", "");
  folder.write("first/forge_workspace/.local/id", "0123456789ab\n");
  const auto copy_to = [&](const char* name) {
    std::filesystem::copy(first, folder / name, std::filesystem::copy_options::recursive);
  };
  copy_to("early");
  const auto relation = [&](const char* name) {
    return project::relation_of({first, "0123456789ab"}, folder / name, "p");
  };
  CHECK(relation("early") == WorkspaceRelation::another);  // which both have that id
  REQUIRE(project::made_workspace_id(first) == "0123456789ab");
  copy_to("late");
  CHECK(project::workspace_id(folder / "late").empty());
  CHECK(project::made_workspace_id(folder / "late") != "0123456789ab");
}

TEST_CASE("who may read a workspace may read its id, and nobody replaces what they cannot read",
          "[project]") {
  const tests::TemporaryFolder folder;
  const std::filesystem::path first = folder / "first";
  folder.write("first/forge_workspace/workspace.yaml", "");
  using std::filesystem::perms;
  for (const std::filesystem::path& open : {folder.path(), first, first / "forge_workspace"})
    permissions(open, perms::all);
  const mode_t before = ::umask(077);
  const std::string id = project::made_workspace_id(first);
  ::umask(before);
  REQUIRE_FALSE(id.empty());
  if (::geteuid() != 0) return;  // only root can be two users
  CHECK(tests::words_of_other_user([&] { return project::workspace_id(first); }) == id);
  const std::filesystem::path file = project::workspace_id_file(first);
  permissions(file, perms::owner_read);
  permissions(file.parent_path(), perms::all);
  CHECK(tests::words_of_other_user([&] { return project::made_workspace_id(first) + "none"; }) ==
        "none");
  CHECK(project::workspace_id(first) == id);
}

}  // namespace
}  // namespace forge::project
