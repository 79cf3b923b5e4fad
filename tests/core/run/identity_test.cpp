#include "core/run/identity.h"

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
  return {identifying_part(experiment()), "d1", "t1", "libtorch", "cpu", 2, 1, ""};
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
  REQUIRE(identifying_part(other) == identifying_part(experiment()));
}

TEST_CASE("keys that came later are part of the identity only where they change something",
          "[run][identity]") {
  json other = experiment();
  other["data"]["documents"] = "file";
  other["data"]["separator"] = "<|endoftext|>";
  other["data"]["field"] = "text";
  other["data"]["rows"] = "packed";
  other["data"]["training_fraction"] = 1.0;
  other["data"]["evaluation_path"] = "/elsewhere/b.txt";
  other["train"]["bfloat16_weights"] = "none";
  other["train"]["micro_batch_size"] = 0;
  REQUIRE(identifying_part(other) == identifying_part(experiment()));
  json in_parts = other;
  in_parts["train"]["micro_batch_size"] = 4;
  REQUIRE(identifying_part(in_parts) != identifying_part(experiment()));
  json padded = other;
  padded["data"]["rows"] = "padded";
  REQUIRE(identifying_part(padded) != identifying_part(experiment()));
  other["train"]["bfloat16_weights"] = "master_copies";
  REQUIRE(identifying_part(other) != identifying_part(experiment()));
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
  REQUIRE(identifying_part(other) == identifying_part(mixed));
  other["data"]["sources"]["web"]["weight"] = 3.0;
  REQUIRE(identifying_part(other) != identifying_part(mixed));
}

TEST_CASE("what can change a number is", "[run][identity]") {
  for (const char* pointer : {"/seed",
                              "/profile",
                              "/train/max_steps",
                              "/train/eval_every",
                              "/train/deterministic",
                              "/data/seed",
                              "/tokenizer/kind"}) {
    json other = experiment();
    other[json::json_pointer(pointer)] = "changed";
    INFO(pointer);
    REQUIRE(identifying_part(other) != identifying_part(experiment()));
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
  REQUIRE(run_key(identity()) == "c82f2f309f82");
}

TEST_CASE("an identity reads back and names what is missing", "[run][identity]") {
  const json written = to_json(identity());
  REQUIRE(to_json(identity_from_json(written)) == written);
  json part = written;
  part.erase("threads");
  REQUIRE(contains(error_of([&] { identity_from_json(part); }), "'threads' is missing"));
}

TEST_CASE("a run whose weights are drawn has the key it always had", "[run][identity]") {
  REQUIRE_FALSE(to_json(identity()).contains("initial_weights"));
  Identity given = identity();
  given.initial_weights = "w1";
  REQUIRE(identity_from_json(to_json(given)).initial_weights == "w1");
  REQUIRE(identity_from_json(to_json(identity())).initial_weights.empty());
}

}  // namespace
}  // namespace forge::run
