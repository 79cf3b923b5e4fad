// Which models make no sense, and why.
#include "core/config/check.h"

#include "tests/core/config/fixture.h"
#include "tests/support/catch.h"
#include "tests/support/contains.h"

namespace forge::config {
namespace {

using tests::ConfigFixture;
using tests::contains;
using tests::small_accepted;
using tests::small_refusal;

TEST_CASE("heads must divide the hidden size unless head_dim is given") {
  const std::string error = small_refusal({"model.num_heads=5"});
  REQUIRE(contains(error, "model.num_heads 5 does not divide model.hidden_size 64"));
  REQUIRE(contains(error, "--set model.num_heads=5\n                          ^"));
  REQUIRE(small_accepted({"model.num_heads=5", "model.head_dim=12"}).model.head_dim == 12);
}

TEST_CASE("the complaint is about the key that was set last") {
  REQUIRE(contains(small_refusal({"model.hidden_size=66"}), "--set model.hidden_size=66"));
  REQUIRE(contains(ConfigFixture().small_error("model.num_heads: 5\n"), "c.yaml:8:18"));
}

TEST_CASE("key and value heads default to the heads and must divide them") {
  REQUIRE(small_accepted({}).model.num_kv_heads == 4);
  REQUIRE(small_accepted({"model.num_kv_heads=null"}).model.num_kv_heads == 4);
  REQUIRE(small_accepted({"model.num_kv_heads=2"}).model.num_kv_heads == 2);
  REQUIRE(contains(small_refusal({"model.num_kv_heads=3"}),
                   "model.num_kv_heads 3 does not divide model.num_heads 4"));
}

TEST_CASE("RoPE needs an even number of channels that a head has") {
  REQUIRE(contains(small_refusal({"model.head_dim=15"}), "model.head_dim 15 is odd"));
  REQUIRE(small_accepted({"model.head_dim=15", "model.position.kind=nope"}).model.head_dim == 15);
  REQUIRE(small_accepted({"model.head_dim=15", "model.position.rope_dim=4"}).model.head_dim == 15);
  REQUIRE(
      contains(small_refusal({"model.position.rope_dim=3"}), "model.position.rope_dim 3 is odd"));
  REQUIRE(
      contains(small_refusal({"model.position.rope_dim=18"}), "18 is more than model.head_dim 16"));
  REQUIRE(contains(small_refusal({"model.position.rope_dim=0"}), "must be at least 2"));
}

TEST_CASE("a canon set is put in order and has each of ABCD at most once") {
  REQUIRE(small_accepted({"model.canon.set=DBA"}).model.canon.set == "ABD");
  REQUIRE(small_accepted({"model.canon.set="}).model.canon.set.empty());
  REQUIRE(
      contains(small_refusal({"model.canon.set=AX"}), "'AX' has 'X', which is no Canon position"));
  REQUIRE(contains(small_refusal({"model.canon.set=ac"}), "has 'a', which is no Canon position"));
  REQUIRE(contains(small_refusal({"model.canon.set=AA"}), "'AA' has 'A' twice"));
  REQUIRE(contains(small_refusal({"model.canon.kernel=5"}), "must be from 2 to 4"));
}

TEST_CASE("any subset of ABCD is a canon set, in any order") {
  for (int subset = 0; subset < 16; ++subset) {
    std::string forwards, backwards;
    for (int i = 0; i < 4; ++i) {
      if ((subset >> i & 1) != 0) forwards += "ABCD"[i];
    }
    backwards.assign(forwards.rbegin(), forwards.rend());
    REQUIRE(small_accepted({"model.canon.set=" + backwards}).model.canon.set == forwards);
  }
}

TEST_CASE("a Canon layer has no bias") {
  REQUIRE(contains(small_refusal({"model.canon.set=A", "model.canon.bias=true"}),
                   "model.canon.bias true is not supported"));
  REQUIRE_FALSE(small_accepted({"model.canon.set=A", "model.canon.bias=false"}).model.canon.bias);
}

TEST_CASE("NoPE takes no keys of RoPE") {
  const std::string nope = "model.position.kind=nope";
  const std::string error = small_refusal({nope, "model.position.theta=5e5"});
  REQUIRE(
      contains(error, "model.position.theta 5e5 has no meaning where model.position.kind is nope"));
  REQUIRE(contains(error, "--set model.position.theta=5e5"));
  REQUIRE(contains(error, "NoPE rotates nothing"));
  REQUIRE(contains(small_refusal({nope, "model.position.rope_dim=4"}),
                   "model.position.rope_dim 4 has no"));
  REQUIRE(contains(small_refusal({nope, "model.position.pairing=lingua"}),
                   "model.position.pairing lingua"));
  REQUIRE(contains(small_refusal({nope, "model.position.rope_dim=0"}), "must be at least 2"));
  // A default in so many words is no contradiction: a resolved config is a config.
  REQUIRE(small_accepted({nope, "model.position.theta=10000"}).model.position.theta == 10000);
}

TEST_CASE("turning a part of a model off takes back how an earlier layer had set it up") {
  const ConfigFixture fixture;
  const ResolvedConfig nope = fixture.small(
      "model.position: {theta: 5e5, rope_dim: 4, pairing: lingua}\n", {"model.position.kind=nope"});
  REQUIRE(nope.experiment.model.position.theta == 10000);
  REQUIRE_FALSE(nope.experiment.model.position.rope_dim);
  REQUIRE(nope.experiment.model.position.pairing == RopePairing::huggingface);
  const Origin& theta = nope.origins.at("model.position.theta");
  REQUIRE(theta.set_by.derived_from == "model.position.kind");
  REQUIRE(theta.overrode.front().text == "5e5");
  const ResolvedConfig plain =
      fixture.small("model.canon: {set: AC, kernel: 3, residual: false, activation: silu}\n",
                    {"model.canon.set="});
  REQUIRE(plain.experiment.model.canon.kernel == 4);
  REQUIRE(plain.experiment.model.canon.residual);
  REQUIRE(plain.experiment.model.canon.activation == Activation::none);
}

TEST_CASE("keys of Canon layers need a Canon layer") {
  const std::string error = small_refusal({"model.canon.kernel=3"});
  REQUIRE(contains(error, "model.canon.kernel 3 has no meaning where model.canon.set is empty"));
  REQUIRE(contains(error, "--set model.canon.kernel=3"));
  REQUIRE(
      contains(small_refusal({"model.canon.residual=false"}), "model.canon.residual false has no"));
  REQUIRE(contains(small_refusal({"model.canon.activation=silu"}),
                   "model.canon.activation silu has no"));
  REQUIRE(small_accepted({"model.canon.set=A", "model.canon.kernel=2"}).model.canon.kernel == 2);
  REQUIRE(contains(small_refusal({"model.canon.set=A", "model.canon.kernel=1"}),
                   "must be from 2 to 4"));
}

TEST_CASE("lingua's settings of the initial weights need lingua's initialisation") {
  REQUIRE(contains(small_refusal({"model.init_base_std=0.02"}),
                   "model.init_base_std 0.02 has no meaning where model.init is forgather"));
  REQUIRE(
      contains(small_refusal({"model.init=huggingface", "model.init_std_factor=dim_ratio"}),
               "model.init_std_factor dim_ratio has no meaning where model.init is huggingface"));
  const ModelConfig model =
      small_accepted(
          {"model.init=lingua", "model.init_base_std=0.02", "model.init_std_factor=current_depth"})
          .model;
  REQUIRE(model.init_base_std == 0.02);
  REQUIRE(model.init_std_factor == InitStdFactor::current_depth);
  REQUIRE(
      contains(small_refusal({"model.init=lingua", "model.init_base_std=0"}), "must be above 0"));
  REQUIRE(contains(small_refusal({"model.init_std_factor=depth"}),
                   "disabled, global_depth, current_depth, dim_ratio"));
}

TEST_CASE("every option of the architecture is a key with these values") {
  const ModelConfig model = small_accepted({"model.num_heads=8",
                                            "model.num_kv_heads=2",
                                            "model.head_dim=16",
                                            "model.position.theta=1e5",
                                            "model.position.rope_dim=4",
                                            "model.position.pairing=lingua",
                                            "model.qk_norm=per_head",
                                            "model.canon.set=CA",
                                            "model.canon.residual=false",
                                            "model.canon.activation=silu",
                                            "model.rms_norm_eps=1e-6",
                                            "model.rms_norm_rounding=lingua",
                                            "model.tie_embeddings=true"})
                                .model;
  REQUIRE(model.num_heads == 8);
  REQUIRE(model.num_kv_heads == 2);
  REQUIRE(model.head_dim == 16);
  REQUIRE(model.position.theta == 1e5);
  REQUIRE(model.position.rope_dim == 4);
  REQUIRE(model.position.pairing == RopePairing::lingua);
  REQUIRE(model.qk_norm == QkNorm::per_head);
  REQUIRE(model.canon.set == "AC");
  REQUIRE_FALSE(model.canon.residual);
  REQUIRE(model.canon.activation == Activation::silu);
  REQUIRE(model.rms_norm_eps == 1e-6);
  REQUIRE(model.rms_norm_rounding == RmsNormRounding::lingua);
  REQUIRE(model.tie_embeddings);
  REQUIRE(contains(small_refusal({"model.rms_norm_rounding=torch"}),
                   "must be one of huggingface, lingua"));
  REQUIRE(contains(small_refusal({"model.qk_norm=head"}), "must be one of none, full, per_head"));
  REQUIRE(contains(small_refusal({"model.rms_norm_eps=0"}), "must be above 0"));
}

}  // namespace
}  // namespace forge::config
