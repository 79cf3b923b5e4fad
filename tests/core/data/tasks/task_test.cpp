#include "core/data/tasks/task.h"

#include <atomic>
#include <cstdlib>

#include "core/base/hash.h"
#include "core/base/parallel.h"
#include "core/data/tasks/capo.h"
#include "tests/core/data/tasks/published.h"
#include "tests/support/catch.h"

namespace forge::data::tasks {
namespace {

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
        const std::optional<Fault> fault = task->find_fault(instance);
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
  Scores more;
  more.add("a", 1, 5);
  more.add("b", 0);
  scores.add(more);
  REQUIRE(*scores.mean("a") == 0.5);
  REQUIRE(*scores.mean("b") == 0);
  REQUIRE(!scores.mean("c"));
}

}  // namespace
}  // namespace forge::data::tasks
