#include "core/run/identity.h"
#include "core/worker/json_fields.h"
#include "tests/core/run/fixture.h"
#include "tests/support/catch.h"

namespace forge::run {
namespace {

using nlohmann::json;
using tests::contains;
using tests::error_of;

json experiment() {
  return json::parse(R"({"name":"X","description":"d","seed":42,"profile":"quick",
      "train":{"max_steps":300,"log_every":10,"checkpoint_every":0,"eval_every":100},
      "data":{"source":"text","path":"/home/ada/a.txt","seed":1},
      "tokenizer":{"kind":"byte_level_bpe","path":"/home/ada/t.json"}})");
}

Identity identity() {
  return {identity_config(experiment()), "d1", "t1", "libtorch", "cpu", 2, 1, ""};
}

TEST_CASE("what cannot change a number is no part of the identity", "[run][identity]") {
  json other = experiment();
  other["name"] = "another";
  other["description"] = "words";
  other["train"]["log_every"] = 1;
  other["train"]["checkpoint_every"] = 7;
  other["train"]["keep_checkpoints"] = 9;
  other["train"]["keep_best"] = false;
  other["train"]["max_bad_steps"] = 3;
  other["train"]["hung_after_seconds"] = 9;
  other["data"]["path"] = "/elsewhere/a.txt";
  other["tokenizer"]["path"] = "";
  other["train"]["initial_weights"] = "/elsewhere/model";
  other["train"]["recompute"] = "blocks";
  other["parallel"] = {{"processes", 4}, {"timeout_seconds", 60.0}};
  REQUIRE(identity_config(other) == identity_config(experiment()));
}

TEST_CASE("a mixture is told by names and weights and not by where its texts lie",
          "[run][identity]") {
  json mixed = experiment();
  mixed["data"] = json::parse(R"({"source":"mixture","sources":{
      "web":{"weight":2.0,"source":"text","path":"/home/ada/web.txt","evaluation_path":""},
      "code":{"weight":1.0,"source":"jsonl","path":"/home/ada/code.jsonl"}}})");
  json other = mixed;
  other["data"]["sources"]["web"]["path"] = "/elsewhere/web.txt";
  other["data"]["sources"]["web"]["evaluation_path"] = "/elsewhere/held_out.txt";
  other["data"]["sources"]["off"] = {{"weight", 0.0}, {"path", "/elsewhere/off.txt"}};
  REQUIRE(identity_config(other) == identity_config(mixed));
  other["data"]["sources"]["web"]["weight"] = 3.0;
  REQUIRE(identity_config(other) != identity_config(mixed));
}

TEST_CASE("what can change a number is", "[run][identity]") {
  for (const char* pointer : {"/seed",
                              "/profile",
                              "/train/max_steps",
                              "/train/eval_every",
                              "/train/deterministic",
                              "/train/micro_batch_size",
                              "/train/gradient_slots",
                              "/train/bfloat16_weights",
                              "/data/rows",
                              "/data/seed",
                              "/tokenizer/kind"}) {
    json other = experiment();
    other[json::json_pointer(pointer)] = "changed";
    INFO(pointer);
    REQUIRE(identity_config(other) != identity_config(experiment()));
  }
}

TEST_CASE("every part of an identity changes its key", "[run][identity]") {
  std::vector<Identity> all(9, identity());
  all[1].experiment["seed"] = 43;
  all[2].data_fingerprint = "d2";
  all[3].tokenizer_fingerprint = "t2";
  all[4].backend = "other";
  all[5].device_type = "cuda";
  all[6].threads = 1;
  all[7].numerics_version = 2;
  all[8].initial_weights = "w1";
  std::vector<std::string> keys;
  for (const Identity& one : all) keys.push_back(run_key(one));
  std::sort(keys.begin(), keys.end());
  REQUIRE(std::unique(keys.begin(), keys.end()) == keys.end());
}

TEST_CASE("a key is twelve hexadecimal digits and stays the same from version to version",
          "[run][identity]") {
  REQUIRE(run_key(identity()).find_first_not_of("0123456789abcdef") == std::string::npos);
  // A changed key would make every stored run a stranger: change it only on purpose.
  REQUIRE(run_key(identity()) == "e8bd587fe0c4");
}

TEST_CASE("an identity reads back and names what is missing", "[run][identity]") {
  const auto read = [](const json& part) {
    return worker::read_fields<Identity>(part, "identity of a run");
  };
  Identity given = identity();
  given.initial_weights = "w1";
  const json written = worker::write_fields(given);
  REQUIRE(worker::write_fields(read(written)) == written);
  json part = written;
  part.erase("threads");
  REQUIRE(contains(error_of([&] { read(part); }), "'threads' is missing"));
}

Identity small_identity() {
  const nlohmann::json experiment = {{"seed", 42}, {"train", {{"max_steps", 300}, {"seq_len", 8}}}};
  return {experiment, "d1", "t1", "libtorch", "cpu", 2, 1, ""};
}

TEST_CASE("two identities that are equal differ in nothing", "[run][identity]") {
  REQUIRE(identity_differences(small_identity(), small_identity()).empty());
}

TEST_CASE("every part of an identity that differs is named, keys of the config first",
          "[run][identity]") {
  Identity other = small_identity();
  other.experiment["train"]["max_steps"] = 400;
  other.experiment["train"].erase("seq_len");
  other.experiment["extra"] = {1, 2};
  other.data_fingerprint = "d2";
  other.tokenizer_fingerprint = "t2";
  other.backend = "pytorch";
  other.device_type = "cuda";
  other.threads = 0;
  other.numerics_version = 2;
  other.initial_weights = "w";
  const auto found = identity_differences(small_identity(), other);
  std::vector<std::string> names;
  for (const IdentityDifference& difference : found) {
    names.push_back(difference.what);
    INFO(difference.what);
    const bool is_part = names.size() > 4;
    REQUIRE(difference.meaning.empty() != is_part);
  }
  REQUIRE(names == std::vector<std::string>{"extra.0",
                                            "extra.1",
                                            "train.max_steps",
                                            "train.seq_len",
                                            "backend",
                                            "data_fingerprint",
                                            "device_type",
                                            "initial_weights",
                                            "numerics_version",
                                            "threads",
                                            "tokenizer_fingerprint"});
  REQUIRE(found[2].left == "300");
  REQUIRE(found[2].right == "400");
  REQUIRE(found[3].right.empty());
  REQUIRE(found[4].left == "\"libtorch\"");
  REQUIRE(found[7].left == "\"\"");
}

TEST_CASE("a grammar in another folder is the same data", "[run][identity]") {
  const auto of = [](const char* path) {
    json config = experiment();
    config["data"] = {{"source", "task"}, {"task", {{"name", "lano"}, {"grammar", path}}}};
    return config;
  };
  CHECK(identity_config(of("/a/g.json")) == identity_config(of("/b/g.json")));
  const std::vector<json::json_pointer> places = places_of_data(of("/a/g.json"));
  CHECK(std::count(places.begin(), places.end(), json::json_pointer("/data/task/grammar")) == 1);
}

}  // namespace
}  // namespace forge::run
