#include "core/data/tasks/spec.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "core/base/fs.h"
#include "core/config/task_keys.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

using config::TaskVariant;
using tests::contains;
using tests::error_of;
using Json = nlohmann::json;

/// A task of which all sizes are `size`; what it does not have stays 0.
config::DataConfig data_of(const std::string& name,
                           int size,
                           TaskVariant variant = TaskVariant::paper) {
  config::DataConfig data;
  data.source = "task";
  data.seed = 7;
  data.task.name = name;
  data.task.variant = variant;
  for (const config::TaskSize& key : config::sizes_of(name)) {
    if (key.least > 0) data.task.*key.field = size;
  }
  return data;
}

std::vector<std::string> names_with_own_ids() {
  std::vector<std::string> names;
  for (const std::string& name : config::task_names()) {
    if (name != "capo") names.push_back(name);
  }
  return names;
}

Instance instance_of(const Task& task, uint64_t seed, Split split, uint64_t index) {
  Instance instance;
  task.generate(seed, split, index, instance);
  return instance;
}

void require_same_instances(const Task& one, const Task& other, uint64_t seed) {
  for (const Split split : {Split::training, Split::evaluation}) {
    for (uint64_t index = 0; index < 4; ++index) {
      const Instance expected = instance_of(other, seed, split, index);
      const Instance made = instance_of(one, seed, split, index);
      REQUIRE(made.tokens == expected.tokens);
      REQUIRE(made.scored == expected.scored);
    }
  }
}

TEST_CASE("a config knows how many ids each task has") {
  for (const std::string& name : names_with_own_ids()) {
    for (const TaskVariant variant : {TaskVariant::paper, TaskVariant::code}) {
      for (const int size : {3, 5, 16, 130}) {
        const config::DataConfig data = data_of(name, size, variant);
        INFO(name << " of " << size << ", variant " << int(variant));
        REQUIRE(config::task_vocab_size(data.task) == task_of(make_spec(data))->vocab_size());
      }
    }
  }
}

TEST_CASE("a config knows how many ids the published grammars have") {
  config::DataConfig data = data_of("lano", 0);
  for (const char* name : {"cfg3f", "cfg3j", "cfg3k"}) {
    data.task.grammar =
        (tests::tests_dir().parent_path() / "templates/data/lano" / (name + std::string(".json")))
            .string();
    REQUIRE(config::task_vocab_size(data.task) == task_of(make_spec(data))->vocab_size());
  }
}

TEST_CASE("a spec that was written and read again makes the task that the config means") {
  const auto task_of_config = [](const config::DataConfig& data) {
    return task_of(Json::parse(make_spec(data).dump()));
  };
  for (const TaskVariant variant : {TaskVariant::paper, TaskVariant::code}) {
    const Variant same = variant == TaskVariant::code ? Variant::code : Variant::paper;
    const std::map<std::string, TaskConfig> meant = {{"depo1", depo1(9, 9)},
                                                     {"depo2", depo2(9, 9, same)},
                                                     {"brevo1", brevo1(9, same)},
                                                     {"brevo2", brevo2(9, same)},
                                                     {"mano", ManoConfig{9, same, true}},
                                                     {"lano", LanoConfig{Grammar::draw({}, 0)}},
                                                     {"copy", CopyConfig{9, 0}}};
    REQUIRE(meant.size() == names_with_own_ids().size());
    for (const auto& [name, expected] : meant) {
      INFO(name);
      const config::DataConfig data = data_of(name, 9, variant);
      REQUIRE(seed_of(Json::parse(make_spec(data).dump())) == 7);
      require_same_instances(*task_of_config(data), *make_task(expected), 7);
    }
  }
  config::DataConfig copy = data_of("copy", 9);
  copy.task.scored_tokens = 2;
  require_same_instances(*task_of_config(copy), *make_task(CopyConfig{9, 2}), 7);
  config::DataConfig lano = data_of("lano", 0);
  lano.task.grammar_seed = 5;
  require_same_instances(*task_of_config(lano), *make_task(LanoConfig{Grammar::draw({}, 5)}), 7);
}

TEST_CASE("a spec of Capo makes the biographies that the config means") {
  for (const TaskVariant variant : {TaskVariant::paper, TaskVariant::code}) {
    const Json spec = Json::parse(make_spec(data_of("capo", 50, variant)).dump());
    REQUIRE(is_capo(spec));
    const Capo made = capo_of(spec);
    const Variant same = variant == TaskVariant::code ? Variant::code : Variant::paper;
    const Capo expected({50, same}, 7);
    REQUIRE(made.people() == 50);
    for (uint64_t index = 0; index < 5; ++index) {
      REQUIRE(made.biography(Split::training, index).text ==
              expected.biography(Split::training, index).text);
    }
  }
  for (const std::string& name : names_with_own_ids()) REQUIRE(!is_capo({{"name", name}}));
}

TEST_CASE("a seed is kept to its last bit") {
  config::DataConfig data = data_of("copy", 9);
  data.seed = 0xfedcba9876543211;
  REQUIRE(seed_of(Json::parse(make_spec(data).dump())) == data.seed);
}

TEST_CASE("a fingerprint changes with all that the rows depend on") {
  const auto fingerprint = [](const config::DataConfig& data) {
    return spec_fingerprint(make_spec(data));
  };
  std::set<std::string> seen;
  for (const std::string& name : config::task_names()) {
    for (const int size : {5, 6}) seen.insert(fingerprint(data_of(name, size)));
    seen.insert(fingerprint(data_of(name, 5, TaskVariant::code)));
    config::DataConfig other = data_of(name, 5);
    REQUIRE(fingerprint(other) == fingerprint(data_of(name, 5)));
    other.seed = 8;
    seen.insert(fingerprint(other));
  }
  config::DataConfig copy = data_of("copy", 5);
  copy.task.scored_tokens = 1;
  seen.insert(fingerprint(copy));
  config::DataConfig lano = data_of("lano", 0);
  lano.task.grammar_seed = 1;
  seen.insert(fingerprint(lano));
  // Lano has no sizes, so that two of its four are one.
  REQUIRE(seen.size() == config::task_names().size() * 4 - 1 + 2);
}

TEST_CASE("a fingerprint is of a grammar and not of its file") {
  const tests::TemporaryFolder folder;
  const auto fingerprint = [&](const std::string& name, const std::string& grammar) {
    config::DataConfig data = data_of("lano", 0);
    data.task.grammar = folder.write(name, grammar).string();
    return spec_fingerprint(make_spec(data));
  };
  const std::string first = fingerprint("a.json", R"({"4": [[1, 2, 3], [1, 3]]})");
  REQUIRE(fingerprint("b/c.json", R"({ "4":[[1,2,3],[1,3]] })") == first);
  REQUIRE(fingerprint("a.json", R"({"4": [[1, 2, 3], [2, 3]]})") != first);
}

TEST_CASE("a spec that describes no task is refused with what is wrong in it") {
  const auto error = [](const Json& spec) { return error_of([&] { task_of(spec); }); };
  const Json right = make_spec(data_of("depo1", 5));
  REQUIRE(error(right) == "");
  const auto with = [&](const char* key, const Json& value) {
    Json spec = right;
    spec[key] = value;
    return error(spec);
  };
  for (const char* key : {"name", "variant", "max_nodes", "max_hops"}) {
    Json spec = right;
    spec.erase(key);
    REQUIRE(contains(error(spec), "no usable '" + std::string(key) + "'"));
    REQUIRE(contains(with(key, Json::array()), "no usable '" + std::string(key) + "'"));
  }
  REQUIRE(contains(with("name", "chess"), "there is no task 'chess'"));
  REQUIRE(contains(with("name", "capo"), "no task 'capo' whose rows are ids of its own"));
  REQUIRE(contains(with("variant", "papers"), "no usable 'variant'"));
  REQUIRE(contains(with("max_nodes", 5.5), "no usable 'max_nodes'"));
  REQUIRE(contains(with("max_nodes", 4294967301), "no usable 'max_nodes'"));
  REQUIRE(contains(with("max_nodes", 2), "max_nodes must be 3"));
  for (const Json& rubbish : {Json(), Json::array(), Json("copy"), Json(5)}) {
    REQUIRE(contains(error(rubbish), "no usable 'name'"));
  }
}

TEST_CASE("what is no spec of Capo is not taken for one") {
  REQUIRE_FALSE(is_capo(Json()));
  REQUIRE_FALSE(is_capo(Json::object()));
  REQUIRE_FALSE(is_capo({{"name", 5}}));
  REQUIRE_FALSE(is_capo("capo"));
  const auto error = [](const Json& spec) { return error_of([&] { capo_of(spec); }); };
  REQUIRE(contains(error({{"people", 5}, {"variant", "paper"}}), "no usable 'seed'"));
  REQUIRE(contains(error({{"seed", 1}, {"variant", "paper"}}), "no usable 'people'"));
  REQUIRE(contains(error({{"people", 0}, {"seed", 1}, {"variant", "paper"}}), "people must be 1"));
  REQUIRE(error({{"people", 5}, {"seed", 1}, {"variant", "paper"}}) == "");
}

TEST_CASE("a grammar that cannot be read makes no spec") {
  const tests::TemporaryFolder folder;
  config::DataConfig data = data_of("lano", 0);
  data.task.grammar = (folder / "missing.json").string();
  REQUIRE(contains(error_of([&] { make_spec(data); }), "missing.json"));
  data.task.grammar = folder.write("g.json", "[1]").string();
  REQUIRE(contains(error_of([&] { make_spec(data); }), "g.json"));
  Json spec = make_spec(data_of("lano", 0));
  spec["grammar"] = {{"4", 5}};
  REQUIRE(contains(error_of([&] { task_of(spec); }), "the task's grammar"));
}

}  // namespace
}  // namespace forge::data::tasks
