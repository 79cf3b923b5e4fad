#include "core/run/why.h"

#include "tests/support/catch.h"

namespace forge::run {
namespace {

Identity small_identity() {
  const nlohmann::json experiment = {{"seed", 42}, {"train", {{"max_steps", 300}, {"seq_len", 8}}}};
  return {experiment, "d1", "t1", "libtorch", "cpu", 2, 1, ""};
}

TEST_CASE("two identities that are equal differ in nothing", "[run][identity]") {
  REQUIRE(differences(small_identity(), small_identity()).empty());
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
  const auto found = differences(small_identity(), other);
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
  REQUIRE(found[7].left.empty());
}

}  // namespace
}  // namespace forge::run
