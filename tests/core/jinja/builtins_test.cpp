#include <cstdlib>

#include "core/jinja/host_environment.h"
#include "tests/core/jinja/templates.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

TEST_CASE("times come from the host_environment") {
  CHECK(rendered("{{ utcisotime() }} {{ utcfiletime() }}") ==
        "2023-11-14T22:13:20 2023-11-14T22-13-20");
  CHECK(rendered(
            "{{ utcnow() }} {{ utcnow().year }} {{ utcnow().strftime('%d.%m.%y %H:%M:%S.%f') }}") ==
        "2023-11-14 22:13:20.250000 2023 14.11.23 22:13:20.250000");
  CHECK(rendered("{{ utcnow().isoformat() }} {{ utcnow().weekday() }}") ==
        "2023-11-14T22:13:20.250000 1");
  CHECK(rendered("{{ isotime() == now().strftime('%Y-%m-%dT%H:%M:%S') }}") == "True");
  CHECK(rendered("{{ filetime() == now().strftime('%Y-%m-%dT%H-%M-%S') }}") == "True");
}

TEST_CASE("folders and names come from the host_environment") {
  CHECK(rendered("{{ user_home_dir() }} {{ getcwd() }} {{ hostname }} {{ uname.node }}") ==
        "/home/ada /work lab lab");
  CHECK(rendered("{{ forgather_config_dir() }} {{ user_data_dir('x') }} {{ user_cache_dir() }}") ==
        "/home/ada/.config/forgather /home/ada/.local/share/x /home/ada/.cache");
  CHECK(rendered("{{ project_dir }} {{ workspace_root }}") == "/projects/demo /projects");
  Templates moved({{"main", "{{ forgather_config_dir() }}"}});
  moved.request.host_environment.config_home = "/etc/ada";
  CHECK(moved.text() == "/etc/ada/forgather");
}

TEST_CASE("SOURCE_DATE_EPOCH pins the time of this machine") {
  ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
  CHECK(jinja::HostEnvironment::current().unix_time == 1700000000);
  ::setenv("SOURCE_DATE_EPOCH", "yesterday", 1);
  const std::string message = error_of([] { jinja::HostEnvironment::current(); });
  CHECK(message.find("SOURCE_DATE_EPOCH: 'yesterday' is no time") != std::string::npos);
  ::unsetenv("SOURCE_DATE_EPOCH");
  CHECK(jinja::HostEnvironment::current().unix_time > 1700000000);
}

TEST_CASE("versions are empty where there is no Python") {
  CHECK(rendered("{{ versions }}") ==
        "{'python': '', 'torch': '', 'transformers': '', 'accelerate': ''}");
}

TEST_CASE("versions are looked up once and only when a template reads them") {
  Templates templates(
      {{"reads", "{{ versions.python }} {% include 'again' %}{% import 'again' as a %}"},
       {"again", "{{ versions.torch }}"},
       {"other", "{{ 1 }}"},
       {"own", "{% set versions = 2 %}{{ versions }}"}});
  int calls = 0;
  templates.request.host_environment.python_versions = [&calls] {
    ++calls;
    return jinja::PythonVersions{"3.11.2", "2.1.0", "", ""};
  };
  CHECK(templates.text("other") == "1");
  CHECK(templates.text("own") == "2");
  CHECK(calls == 0);
  CHECK(templates.text("reads") == "3.11.2 2.1.0");
  CHECK(calls == 1);
}

TEST_CASE("the caller's variables go before globals and imports do not see them") {
  Templates templates({{"main", "{{ project_dir }} {% from 'm' import f %}{{ f() }}"},
                       {"m", "{% macro f() %}{{ project_dir }}{% endmacro %}"}});
  jinja::Variable mine;
  mine.kind = jinja::Variable::Kind::string;
  mine.string = "mine";
  templates.request.variables["project_dir"] = mine;
  CHECK(templates.text() == "mine /projects/demo");
}

TEST_CASE("a variable of each kind prints as Python prints it") {
  Templates templates({{"main", "{{ a }} {{ b }} {{ c }} {{ d }} {{ e }} {{ f }}"}});
  using Kind = jinja::Variable::Kind;
  templates.request.variables = {{"a", {Kind::none, false, 0, 0, ""}},
                                 {"b", {Kind::boolean, true, 0, 0, ""}},
                                 {"c", {Kind::integer, false, 7, 0, ""}},
                                 {"d", {Kind::real, false, 0, 1e-5, ""}},
                                 {"e", {Kind::string, false, 0, 0, "text"}}};
  jinja::Variable list{Kind::list, false, 0, 0, "", {{Kind::integer, false, 1, 0, ""}}};
  templates.request.variables["f"] = list;
  CHECK(templates.text() == "None True 7 1e-05 text [1]");
}

namespace fs = std::filesystem;
using jinja::find_python_versions;
using jinja::PythonVersions;

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

TEST_CASE("letters change case as in Python, one to several where Unicode says so") {
  CHECK(rendered("{{ 'straße ﬁn ǆ'.upper() }}") == "STRASSE FIN Ǆ");
  CHECK(rendered("{{ 'ΟΔΟΣ ΣΑΣ.'.lower() }}") == "οδος σας.");
  CHECK(rendered("{{ 'ǆ ﬁ ß'.title() }} {{ 'ǆX'.capitalize() }}") == "ǅ Fi Ss ǅx");
  CHECK(rendered("{{ 'ß'.casefold() }} {{ 'İ'.lower() | length }}") == "ss 2");
  CHECK(rendered("{{ 'Aǅ'.isupper() }} {{ 'Aǅ' is upper }} {{ 'aǅ' is lower }}") ==
        "False False False");
  CHECK(rendered("{{ \"it's\".title() }} {{ \"it's a-b\" | title }}") == "It'S It's A-B");
}

TEST_CASE("words are wrapped at blanks and hyphens") {
  CHECK(rendered("{{ 'the quick brown fox' | wordwrap(10) }}") == "the quick\nbrown fox");
  CHECK(rendered("{{ 'well-known--and so' | wordwrap(6, wrapstring='|') }}") ==
        "well-|known|--and|so");
  CHECK(rendered("{{ 'abcdefgh' | wordwrap(3) }}") == "abc\ndef\ngh");
  CHECK(rendered("{{ 'abcdefgh x' | wordwrap(3, false) }}") == "abcdefgh\nx");
  CHECK(render_error("{{ 'a' | wordwrap(0) }}").find("must be positive") != std::string::npos);
}

TEST_CASE("long values are printed over several lines with sorted keys") {
  CHECK(rendered("{{ {'b': 1, 'a': [2]} | pprint }}") == "{'a': [2], 'b': 1}");
  CHECK(rendered("{{ ['word ' * 12, 'x'] | pprint }}") ==
        "['word word word word word word word word word word word word ', 'x']");
  CHECK(rendered("{{ {'k': ['word ' * 9, 'word ' * 9]} | pprint }}") ==
        "{'k': ['word word word word word word word word word ',\n"
        "       'word word word word word word word word word ']}");
}

TEST_CASE("text is made fit for URLs and XML") {
  CHECK(rendered("{{ 'a b/c?é' | urlencode }}") == "a%20b/c%3F%C3%A9");
  CHECK(rendered("{{ {'a b': 'c/d'} | urlencode }}") == "a+b=c%2Fd");
  CHECK(rendered("<x{{ {'a': '<', 'b': none} | xmlattr }}>") == "<x a=\"&lt;\">");
  CHECK(rendered("{{ '<b>a</b> <!-- > --> &lt;&#65;' | striptags }}") == "a <A");
  CHECK(render_error("{{ {'a b': 1} | xmlattr }}").find("'a b' cannot be the name") !=
        std::string::npos);
}

TEST_CASE("a container that toyaml meets twice is written once") {
  CHECK(rendered("{% set l = [1] %}{{ [l, l, {'a': l}] | toyaml }}") ==
        "[&id001 [1], *id001, {a: *id001}]");
  CHECK(rendered("{{ [[], [], 'a', 'a'] | toyaml }}") == "[[], [], a, a]");
}

TEST_CASE("formats number all of their fields or none and methods take their arguments by order") {
  CHECK(rendered("{{ '{1} {0}'.format(1, 2) }} {{ '{!a}'.format('é') }}") == "2 1 '\\xe9'");
  CHECK(render_error("{{ '{} {0}'.format(1) }}").find("numbers all of its fields") !=
        std::string::npos);
  CHECK(render_error("{{ 'a'.replace(old='a', new='b') }}").find("takes no named arguments") !=
        std::string::npos);
  CHECK(render_error("{{ '%x' % 1.5 }}").find("an integer is required") != std::string::npos);
}

TEST_CASE("percent formats write characters and the least number of digits as Python does") {
  const std::pair<const char*, const char*> cases[] = {{"'%.3d' % 5", "005"},
                                                       {"'%.3d' % -5", "-005"},
                                                       {"'%+.3d' % 5", "+005"},
                                                       {"'%06.3d' % 5", "000005"},
                                                       {"'%6.3d' % 5", "   005"},
                                                       {"'%-6.3d|' % 5", "005   |"},
                                                       {"'%.0d' % 0", "0"},
                                                       {"'%.3d' % 5.7", "005"},
                                                       {"'%.3i' % true", "001"},
                                                       {"'%#.3x' % 5", "0x005"},
                                                       {"'%#08.3x' % 255", "0x0000ff"},
                                                       {"'%08.3x' % 255", "000000ff"},
                                                       {"'%#.3o' % 8", "0o010"},
                                                       {"'%-05d|' % 5", "5    |"},
                                                       {"'%+07.2f' % 1.5", "+001.50"},
                                                       {"'%c' % 65", "A"},
                                                       {"'%c' % 'a'", "a"},
                                                       {"'%c' % 'é'", "é"},
                                                       {"'%5c' % 65", "    A"},
                                                       {"'%05c' % 'a'", "    a"},
                                                       {"'%-3c|' % 'a'", "a  |"},
                                                       {"'%+c' % 65", "A"},
                                                       {"'%#.0c' % 65", "A"}};
  for (const auto& [expression, text] : cases) {
    INFO(expression);
    CHECK(rendered(std::string("{{ ") + expression + " }}") == text);
  }
  for (const char* value : {"'ab'", "''", "6.5", "none", "[1]", "-1", "1114112"}) {
    INFO(value);
    CHECK(render_error(std::string("{{ '%c' % ") + value + " }}") != "");
  }
}

TEST_CASE("an unknown filter is an error where it could run") {
  CHECK(render_error("{% macro m() %}{{ 1 | nope }}{% endmacro %}") != "");
  CHECK(render_error("{% if false %}{% for i in [] %}{{ i | nope }}{% endfor %}{% endif %}") != "");
  CHECK(rendered("{% if false %}{{ 1 | nope }}{% endif %}x") == "x");
  Templates silenced({{"main", "{% extends 'base' %}{{ 1 | nope }}"}, {"base", "B"}});
  CHECK(silenced.text() == "B");
}

TEST_CASE("autoescaping can be switched off but not on") {
  CHECK(rendered("{% autoescape false %}{{ '<' }}{% endautoescape %}") == "<");
  CHECK(render_error("{% autoescape true %}{{ '<' }}{% endautoescape %}")
            .find("autoescaping is not supported") != std::string::npos);
}

}  // namespace
}  // namespace forge::tests
