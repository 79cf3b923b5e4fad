#include "core/templating/python_versions.h"

#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

namespace fs = std::filesystem;
using templating::find_python_versions;
using templating::PythonVersions;

/// A program that holds its version as a real one does.
std::string program_with(const std::string& version) {
  return std::string("ELF\0 3.11. ", 11) + std::string(1, '\0') + version + std::string(1, '\0') +
         "rest";
}

TEST_CASE("the version of an installed Python is read from its program") {
  const TemporaryFolder folder;
  folder.write("usr/bin/python3.11", program_with("3.11.2"));
  fs::create_symlink("python3.11", folder / "usr/bin/python3");
  folder.write("usr/lib/python3/dist-packages/torch-1.13.1.egg-info", "");
  folder.write("usr/lib/python3/dist-packages/torchvision-0.14.dist-info/METADATA", "");
  folder.write("ada/.local/lib/python3.11/site-packages/accelerate-0.21.0.dist-info/METADATA", "");
  const std::string path = "/nowhere:" + (folder / "usr/bin").string();
  const PythonVersions versions = find_python_versions(path, (folder / "ada").string());
  CHECK(versions.python == "3.11.2");
  CHECK(versions.torch == "1.13.1");
  CHECK(versions.accelerate == "0.21.0");
}

TEST_CASE("a virtual environment has its own packages and says its version") {
  const TemporaryFolder folder;
  folder.write("usr/bin/python3.11", program_with("3.11.2"));
  folder.write("env/pyvenv.cfg", "home = /usr/bin\nversion = 3.11.2\n");
  folder.write("env/bin/activate", "");
  fs::create_symlink(folder / "usr/bin/python3.11", folder / "env/bin/python3");
  folder.write("env/lib/python3.11/site-packages/torch-2.1.0+cu118.dist-info/METADATA", "");
  const PythonVersions versions = find_python_versions((folder / "env/bin").string(), "/nobody");
  CHECK(versions.python == "3.11.2");
  CHECK(versions.torch == "2.1.0+cu118");
  CHECK(versions.transformers == "");
}

TEST_CASE("the version of a Python in a shared library is read from its headers") {
  const TemporaryFolder folder;
  folder.write("opt/bin/python3.12", "ELF");
  fs::create_symlink("python3.12", folder / "opt/bin/python3");
  folder.write("opt/include/python3.12/patchlevel.h",
               "/* PY_VERSION is below */\n#define PY_MICRO_VERSION 4\n"
               "#define PY_VERSION      \t\"3.12.4\"\n");
  CHECK(find_python_versions((folder / "opt/bin").string(), "/nobody").python == "3.12.4");
  fs::remove(folder / "opt/include/python3.12/patchlevel.h");
  CHECK(find_python_versions((folder / "opt/bin").string(), "/nobody").python == "3.12");
}

TEST_CASE("a shim of pyenv stands for the chosen version") {
  const TemporaryFolder folder;
  folder.write("pyenv/shims/python3", "#!/bin/sh\n");
  folder.write("pyenv/version", "3.10.13\n");
  folder.write("pyenv/versions/3.10.13/bin/python3.10", std::string(1, '\0') + "3.10.13" + '\0');
  fs::create_symlink("python3.10", folder / "pyenv/versions/3.10.13/bin/python3");
  CHECK(find_python_versions((folder / "pyenv/shims").string(), "/nobody").python == "3.10.13");
}

TEST_CASE("without a Python there are no versions") {
  CHECK(find_python_versions("/nowhere", "/nobody").python == "");
  CHECK(find_python_versions("", "").python == "");
}

}  // namespace
}  // namespace forge::tests
