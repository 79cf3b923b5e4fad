#include <cstdlib>

#include "tests/core/templating/templates.h"
#include "tests/support/catch.h"

namespace forge::tests {
namespace {

TEST_CASE("times come from the surroundings") {
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

TEST_CASE("folders and names come from the surroundings") {
  CHECK(rendered("{{ user_home_dir() }} {{ getcwd() }} {{ hostname }} {{ uname.node }}") ==
        "/home/ada /work lab lab");
  CHECK(rendered("{{ forgather_config_dir() }} {{ user_data_dir('x') }} {{ user_cache_dir() }}") ==
        "/home/ada/.config/forgather /home/ada/.local/share/x /home/ada/.cache");
  CHECK(rendered("{{ project_dir }} {{ workspace_root }}") == "/projects/demo /projects");
  Templates moved({{"main", "{{ forgather_config_dir() }}"}});
  moved.request.surroundings.config_home = "/etc/ada";
  CHECK(moved.text() == "/etc/ada/forgather");
}

TEST_CASE("SOURCE_DATE_EPOCH pins the time of this machine") {
  ::setenv("SOURCE_DATE_EPOCH", "1700000000", 1);
  CHECK(templating::Surroundings::of_this_machine().unix_time == 1700000000);
  ::setenv("SOURCE_DATE_EPOCH", "yesterday", 1);
  const std::string message = error_of([] { templating::Surroundings::of_this_machine(); });
  CHECK(message.find("SOURCE_DATE_EPOCH: 'yesterday' is no time") != std::string::npos);
  ::unsetenv("SOURCE_DATE_EPOCH");
  CHECK(templating::Surroundings::of_this_machine().unix_time > 1700000000);
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
  templates.request.surroundings.python_versions = [&calls] {
    ++calls;
    return templating::PythonVersions{"3.11.2", "2.1.0", "", ""};
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
  templating::Variable mine;
  mine.kind = templating::Variable::Kind::string;
  mine.string = "mine";
  templates.request.variables["project_dir"] = mine;
  CHECK(templates.text() == "mine /projects/demo");
}

TEST_CASE("a variable of each kind prints as Python prints it") {
  Templates templates({{"main", "{{ a }} {{ b }} {{ c }} {{ d }} {{ e }} {{ f }}"}});
  using Kind = templating::Variable::Kind;
  templates.request.variables = {{"a", {Kind::none, false, 0, 0, ""}},
                                 {"b", {Kind::boolean, true, 0, 0, ""}},
                                 {"c", {Kind::integer, false, 7, 0, ""}},
                                 {"d", {Kind::real, false, 0, 1e-5, ""}},
                                 {"e", {Kind::string, false, 0, 0, "text"}}};
  templating::Variable list{Kind::list, false, 0, 0, "", {{Kind::integer, false, 1, 0, ""}}};
  templates.request.variables["f"] = list;
  CHECK(templates.text() == "None True 7 1e-05 text [1]");
}

}  // namespace
}  // namespace forge::tests
