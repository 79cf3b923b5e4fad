#include <atomic>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/config/experiment.h"
#include "core/data/tasks/capo.h"
#include "core/data/tasks/task.h"
#include "core/data/tasks/task_spec.h"
#include "core/data/tasks/task_support.h"
#include "tests/core/data/tasks/published.h"
#include "tests/core/data/tasks/validators.h"
#include "tests/support/catch.h"
#include "tests/support/support.h"

namespace forge::data::tasks {
namespace {

TEST_CASE("names are as many as there are and are read as they were written") {
  for (const auto& [letters, least, most, count] :
       {std::tuple{50, 1, 2, 2550}, std::tuple{3, 5, 7, 3159}, std::tuple{4, 2, 4, 336}}) {
    const NameSet names(letters, least, most, 3);
    REQUIRE(names.count() == count);
    std::set<std::vector<int32_t>> all;
    for (int32_t rank = 0; rank < count; ++rank) {
      Instance instance;
      names.add(rank, true, instance);
      const std::vector<int32_t>& tokens = instance.tokens;
      REQUIRE(static_cast<int>(tokens.size()) >= least);
      REQUIRE(static_cast<int>(tokens.size()) <= most);
      for (size_t i = 0; i < tokens.size(); ++i) {
        REQUIRE((tokens[i] >= letters) == (i + 1 == tokens.size()));
        REQUIRE((tokens[i] >= 0 && tokens[i] < names.end_of_letters()));
      }
      size_t position = 0;
      REQUIRE(names.read(tokens, position) == rank);
      REQUIRE(position == tokens.size());
      all.insert(tokens);
    }
    REQUIRE(static_cast<int>(all.size()) == count);
  }
}

TEST_CASE("drawn names are distinct, and their lengths uniform while there are enough") {
  const NameSet names(4, 5, 7, 100);
  std::map<size_t, int> lengths;
  RandomStream random(1, 2);
  std::vector<int32_t> ranks;
  for (int i = 0; i < 3000; ++i) {
    names.draw_distinct(3, random, ranks);
    REQUIRE(std::set<int32_t>(ranks.begin(), ranks.end()).size() == 3);
    Instance instance;
    names.add(ranks[0], false, instance);
    ++lengths[instance.tokens.size()];
  }
  REQUIRE(lengths.size() == 3);
  for (const auto& [length, count] : lengths) {
    REQUIRE(std::abs(count - 1000) < 4 * std::sqrt(3000.0 * 2 / 9));
  }
  const NameSet few(2, 1, 2, 6);
  few.draw_distinct(6, random, ranks);
  REQUIRE(std::set<int32_t>(ranks.begin(), ranks.end()) == std::set<int32_t>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("sizes follow their law") {
  const int most = 20;
  const SizeDistribution law(most);
  std::map<int, int> counts;
  RandomStream random(1, 3);
  constexpr int draws = 100000;
  for (int i = 0; i < draws; ++i) ++counts[law.draw(random)];
  double sum = 0;
  for (int n = 3; n <= most; ++n) sum += 1 / (n + std::sqrt(most));
  REQUIRE(counts.begin()->first == 3);
  REQUIRE(counts.rbegin()->first == most);
  for (const auto& [n, count] : counts) {
    const double p = 1 / (n + std::sqrt(most)) / sum;
    REQUIRE(std::abs(count - draws * p) < 4.5 * std::sqrt(draws * p * (1 - p)));
  }
}

TEST_CASE("shuffling gives every order as often") {
  std::map<std::vector<int>, int> orders;
  RandomStream random(1, 4);
  for (int i = 0; i < 24000; ++i) {
    std::vector<int> items = {0, 1, 2, 3};
    shuffle(items, random);
    ++orders[items];
  }
  REQUIRE(orders.size() == 24);
  for (const auto& [order, count] : orders) REQUIRE(std::abs(count - 1000) < 4 * 31);
}

struct Case {
  const char* name;
  TaskConfig config;
  size_t instances;  ///< to be checked each time; all 100,000 where FORGE_TASK_INSTANCES says so
  const char* hash;  ///< of the first 50 instances of both splits under seed 1
};

/// The charts of Lano's sentences and the closures of large graphs take their time.
std::vector<Case> cases() {
  return {
      {"depo1", depo1(375, 8), 2000, "8f880d22395043b65c05aa993a54f4de"},
      {"depo1_small", depo1(12, 4), 100000, "52a2853100b99ce04cff374a6035ac18"},
      {"depo2", depo2(125, 16), 2000, "391989a99b87d60dc0d9e262d63c4963"},
      {"depo2_code", depo2(12, 4, Variant::code), 20000, "aa9a4ef0374e115a519a9a6d50df6586"},
      {"brevo1", brevo1(110), 2000, "2ed97ac60f4e99c120cb24f0fe705d04"},
      {"brevo1_small", brevo1(12), 100000, "ca8d91d3d7959898c85a6f6b3492eae8"},
      {"brevo2", brevo2(50), 2000, "6f92f2418e8301f002148279ecaabecb"},
      {"brevo2_code", brevo2(12, Variant::code), 20000, "5750a77f0b3bc70e25544b2f9fc35498"},
      {"mano", ManoConfig{}, 100000, "04c54d0a8c3fecc43704aac90c7d8ff8"},
      {"mano_code", ManoConfig{10, Variant::code, true}, 50000, "6e540a1d533fb6363e4aee917cddd8dc"},
      {"lano_cfg3f",
       LanoConfig{published::grammar("cfg3f")},
       500,
       "fd214b715e8668ffb7dcb3b8a50e9aa5"},
      {"lano_cfg3j",
       LanoConfig{published::grammar("cfg3j")},
       100,
       "6b73fd50e8737e7f8d45c18446300842"},
      {"lano_cfg3k",
       LanoConfig{published::grammar("cfg3k")},
       100,
       "b9aa7bad2c4c2ebf7aa5a0dd6661e8e8"},
      {"lano_drawn",
       LanoConfig{Grammar::draw({3, 3, 3, 3, 4, 2, 3}, 1)},
       100000,
       "089b8e50e61485c7d0f83aacf61e6bf8"},
      {"copy", CopyConfig{}, 1000, "e7453d5f042cc6dcfa45b827a57e7627"},
      {"copy_small", CopyConfig{10, 0}, 100000, "55c1c1b676c1ecb42f0e2a52b301e827"},
  };
}

size_t wanted(size_t instances) {
  const char* asked = std::getenv("FORGE_TASK_INSTANCES");
  return asked == nullptr ? instances : std::strtoull(asked, nullptr, 10);
}

void add(Hasher& hasher, const std::vector<int32_t>& ids) {
  hasher.update(ids.data(), ids.size() * sizeof(int32_t));
}

std::string hash_of(const Task& task) {
  Hasher hasher;
  for (const Split split : {Split::training, Split::evaluation}) {
    for (uint64_t i = 0; i < 50; ++i) {
      Instance instance;
      task.generate(1, split, i, instance);
      add(hasher, instance.tokens);
      hasher.update(instance.scored.data(), instance.scored.size());
    }
  }
  return hasher.hex();
}

TEST_CASE("the streams of the tasks are the same for all time") {
  // Whoever changes one raises tasks_version: runs depend on it.
  REQUIRE(tasks_version == 1);
  for (const Case& each : cases()) {
    INFO(each.name);
    CHECK(hash_of(*make_task(each.config)) == each.hash);
  }
}

TEST_CASE("validators accept what generators make", "[slow]") {
  for (const Case& each : cases()) {
    const auto task = make_task(each.config);
    const size_t count = wanted(each.instances);
    constexpr size_t block = 100;
    parallel_for((count + block - 1) / block, [&](size_t first) {
      Instance instance;
      for (size_t i = first * block; i < std::min(count, (first + 1) * block); ++i) {
        // One in ten as for evaluation, which are all of the largest size.
        const Split split = i % 10 == 9 ? Split::evaluation : Split::training;
        task->generate(11, split, i, instance);
        const std::optional<Fault> fault = find_fault(*task, instance);
        const bool too_short = static_cast<int32_t>(instance.tokens.size()) < task->min_length();
        if (!fault && !too_short) continue;
        throw std::runtime_error(std::string(each.name) + " " + std::to_string(i) + ": " +
                                 (fault ? published::fault(*task, instance) : "too short"));
      }
    });
  }
}

TEST_CASE("an instance depends on seed, split and index alone") {
  for (const Case& each : cases()) {
    INFO(each.name);
    const auto task = make_task(each.config);
    Instance first, again, other;
    const uint64_t far = (uint64_t{1} << 44) - 1;
    task->generate(1, Split::training, far, first);
    task->generate(1, Split::training, 3, again);  // leaves no trace in the instance
    task->generate(1, Split::training, far, again);
    REQUIRE(first.tokens == again.tokens);
    REQUIRE(first.scored == again.scored);
    REQUIRE(first.answers.size() == again.answers.size());
    for (const auto& [seed, split, index] : {std::tuple{2, Split::training, far},
                                             std::tuple{1, Split::evaluation, far},
                                             std::tuple{1, Split::training, far - 1}}) {
      int same = 0;  // small texts may be equal by chance
      for (uint64_t i = 0; i < 10; ++i) {
        task->generate(1, Split::training, far - 100 * i, first);
        task->generate(seed, split, index - 100 * i, other);
        same += first.tokens == other.tokens;
      }
      REQUIRE(same < 5);
    }
  }
}

TEST_CASE("every id of a task has a name of its own") {
  for (const Case& each : cases()) {
    const auto task = make_task(each.config);
    std::map<std::string, int32_t> names;
    for (int32_t id = 0; id < task->vocab_size(); ++id) names.emplace(task->token_name(id), id);
    INFO(each.name);
    REQUIRE(static_cast<int32_t>(names.size()) == task->vocab_size());
  }
}

TEST_CASE("scores are means of what was added") {
  Scores scores;
  scores.add("a", 1);
  scores.add("a", 3, 4);
  scores.add("a", 1, 5);
  scores.add("b", 0);
  REQUIRE(*scores.mean("a") == 0.5);
  REQUIRE(*scores.mean("b") == 0);
  REQUIRE(!scores.mean("c"));
}

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

TEST_CASE("a config knows which tasks are scored by prompts") {
  for (const std::string& name : names_with_own_ids()) {
    const config::DataConfig data = data_of(name, 9, TaskVariant::paper);
    CHECK(data.task.is_scored_by_prompts() ==
          (task_of(make_spec(data))->eval_mode() != EvalMode::teacher_forced));
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
  REQUIRE(contains(with("name", "capo"), "no task 'capo' that generates token ids"));
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
