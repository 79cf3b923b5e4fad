#include "core/jinja/builtins.h"

#include <sys/utsname.h>
#include <algorithm>
#include <array>

#include "core/jinja/evaluator.h"
#include "core/python/objects.h"
#include "core/python/operation.h"
#include "core/python/operators.h"
#include "core/python/repr.h"
#include "core/python/standard_library.h"

namespace forge::jinja {
namespace {

std::array<const FilterTable*, 3> tables() {
  return {&text_filters(), &sequence_filters(), &conversion_filters()};
}

}  // namespace

FilterFunction find_filter(const std::string& name) {
  for (const FilterTable* table : tables()) {
    const auto found = table->find(name);
    if (found != table->end()) return found->second;
  }
  return nullptr;
}

std::vector<std::string> filter_names() {
  std::vector<std::string> names;
  for (const FilterTable* table : tables()) {
    for (const auto& [name, function] : *table) names.emplace_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

namespace {

Value make_dict(const Arguments& arguments) {
  Dict dict;
  update_dict(dict, "dict()", arguments);
  return Value::dict(std::move(dict));
}

Value make_range(const Arguments& arguments) {
  const Parameters parameters("range()", arguments, {"start", "stop", "step"}, 1);
  const bool single = !parameters.given(1);
  const int64_t begin = single ? 0 : parameters.integer(0);
  const int64_t end = single ? parameters.integer(0) : parameters.integer(1);
  return Value::object(std::make_shared<Range>(begin, end, parameters.integer(2, 1)));
}

Value make_cycler(const Arguments& arguments) {
  if (arguments.positional.empty()) throw OperationError("cycler() needs at least one item");
  return Value::object(std::make_shared<Cycler>(arguments.positional));
}

Value make_joiner(const Arguments& arguments) {
  const Parameters parameters("joiner()", arguments, {"sep"});
  return Value::object(std::make_shared<Joiner>(parameters.value(0, Value::string(", "))));
}

/// Paths are cut into parts and joined.
void charge_path(const std::string& path) { charge_walk(100 * path.size()); }

Value join_paths(const Arguments& arguments) {
  std::vector<std::string> parts;
  for (const Value& part : arguments.positional) {
    if (!require_defined(part).is_string())
      throw OperationError("joinpath() takes strings, not '" + type_name(part) + "'");
    charge_path(part.as_string());
    parts.push_back(part.as_string());
  }
  if (!arguments.named.empty() || parts.empty())
    throw OperationError("joinpath() takes one or more strings");
  return Value::string(join_path(parts));
}

/// Adds a function of one path.
template <typename Body>
void add_path_function(VariableMap& globals, const std::string& name, Body body) {
  globals[name] = make_function(name, [name, body](const Arguments& arguments) {
    const std::string path = Parameters(name + "()", arguments, {"path"}, 1).text(0);
    charge_path(path);
    return body(path);
  });
}

/// Adds a function without arguments that gives a text.
void add_text_function(VariableMap& globals, const std::string& name, const std::string& text) {
  globals[name] = make_function(name, [name, text](const Arguments& arguments) {
    Parameters(name + "()", arguments, {});
    return Value::string(text);
  });
}

void add_path_functions(VariableMap& globals, const HostEnvironment& host_environment) {
  const std::string here = host_environment.working_directory;
  globals["joinpath"] = make_function("joinpath", join_paths);
  globals["relpath"] = make_function("relpath", [here](const Arguments& arguments) {
    const Parameters parameters("relpath()", arguments, {"path", "start"}, 1);
    charge_path(parameters.text(0));
    charge_path(parameters.text(1, "."));
    return Value::string(relative_path(parameters.text(0), parameters.text(1, "."), here));
  });
  const auto add = [&globals](const std::string& name, auto body) {
    add_path_function(
        globals, name, [body](const std::string& path) { return Value::string(body(path)); });
  };
  add("normpath", normalize_path);
  add("abspath", [here](const std::string& path) { return absolute_path(path, here); });
  add("dirname", directory_name);
  add("basename", base_name);
  add("modname_from_path",
      [](const std::string& path) { return split_extension(base_name(path)).first; });
  add_path_function(globals, "splitext", [](const std::string& path) {
    const auto [stem, extension] = split_extension(path);
    return Value::tuple({Value::string(stem), Value::string(extension)});
  });
}

void add_time_functions(VariableMap& globals, double unix_time) {
  const DateTime local = DateTime::local(unix_time), utc = DateTime::utc(unix_time);
  const std::string iso = "%Y-%m-%dT%H:%M:%S", file = "%Y-%m-%dT%H-%M-%S";
  add_text_function(globals, "isotime", local.format(iso));
  add_text_function(globals, "utcisotime", utc.format(iso));
  add_text_function(globals, "filetime", local.format(file));
  add_text_function(globals, "utcfiletime", utc.format(file));
  globals["now"] = make_function("now", [local](const Arguments&) {
    return Value::object(std::make_shared<DateTime>(local));
  });
  globals["utcnow"] = make_function(
      "utcnow", [utc](const Arguments&) { return Value::object(std::make_shared<DateTime>(utc)); });
}

/// user_data_dir('name') and its like of platformdirs: a folder for an application's files.
void add_application_folder(VariableMap& globals,
                            const std::string& name,
                            const std::string& folder) {
  globals[name] = make_function(name, [name, folder](const Arguments& arguments) {
    const std::vector<std::string> names = {"appname", "appauthor", "version"};
    const Parameters parameters(name + "()", arguments, names);
    std::string path = folder;
    if (!parameters.value(0).is_none()) {
      path = join_path({path, parameters.text(0)});
      if (!parameters.value(2).is_none()) path = join_path({path, parameters.text(2)});
    }
    return Value::string(path);
  });
}

void add_folder_functions(VariableMap& globals, const HostEnvironment& host_environment) {
  const auto below_home = [&](const std::string& folder, const char* fallback) {
    return folder.empty() ? join_path({host_environment.home_directory, fallback}) : folder;
  };
  const std::string config = below_home(host_environment.config_home, ".config");
  add_text_function(globals, "user_home_dir", host_environment.home_directory);
  add_text_function(globals, "getcwd", host_environment.working_directory);
  add_text_function(globals, "forgather_config_dir", join_path({config, "forgather"}));
  add_application_folder(globals, "user_config_dir", config);
  add_application_folder(
      globals, "user_data_dir", below_home(host_environment.data_home, ".local/share"));
  add_application_folder(
      globals, "user_cache_dir", below_home(host_environment.cache_home, ".cache"));
  add_application_folder(globals, "site_data_dir", "/usr/local/share");
  add_application_folder(globals, "site_config_dir", "/etc/xdg");
}

void add_machine(VariableMap& globals, const HostEnvironment& host_environment) {
  globals["hostname"] = Value::string(host_environment.host_name);
  struct utsname system {};
  ::uname(&system);
  globals["uname"] = Value::object(std::make_shared<Record>(
      "uname_result",
      Record::Fields{{"system", Value::string(std::string(system.sysname))},
                     {"node", Value::string(host_environment.host_name)},
                     {"release", Value::string(std::string(system.release))},
                     {"version", Value::string(std::string(system.version))},
                     {"machine", Value::string(std::string(system.machine))}}));
}

}  // namespace

VariableMap make_globals(const RenderRequest& request) {
  VariableMap globals;
  globals["dict"] = make_function("dict", make_dict);
  globals["range"] = make_function("range", make_range);
  globals["cycler"] = make_function("cycler", make_cycler);
  globals["joiner"] = make_function("joiner", make_joiner);
  globals["repr"] = make_function("repr", [](const Arguments& arguments) {
    return Value::string(repr_of(Parameters("repr()", arguments, {"value"}, 1).value(0)));
  });
  globals["project_dir"] = Value::string(request.project_dir);
  globals["workspace_root"] = Value::string(request.workspace_root);
  if (!request.host_environment.library_dir.empty()) {
    globals["forge_library_dir"] = Value::string(request.host_environment.library_dir);
  }
  add_path_functions(globals, request.host_environment);
  add_time_functions(globals, request.host_environment.unix_time);
  add_folder_functions(globals, request.host_environment);
  add_machine(globals, request.host_environment);
  return globals;
}

Value make_versions(const RenderRequest& request) {
  PythonVersions versions;
  if (request.host_environment.python_versions)
    versions = request.host_environment.python_versions();
  Dict dict;
  dict.set(Value::string("python"), Value::string(versions.python));
  dict.set(Value::string("torch"), Value::string(versions.torch));
  dict.set(Value::string("transformers"), Value::string(versions.transformers));
  dict.set(Value::string("accelerate"), Value::string(versions.accelerate));
  return Value::dict(std::move(dict));
}

const std::set<std::string>& known_names() {
  static const std::set<std::string> names = [] {
    std::set<std::string> list = {"loop", "self", "super", "caller", "varargs", "kwargs"};
    // Machines without an installed forge lack the last.
    list.insert({"namespace", "versions", "forge_library_dir"});
    for (const auto& [name, value] : make_globals({})) list.insert(name);
    return list;
  }();
  return names;
}

}  // namespace forge::jinja
