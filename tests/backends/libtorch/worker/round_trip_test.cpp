#include "tests/support/torch_catch.h"

#include "backends/libtorch/worker/weights.h"
#include "core/hf/export_model.h"
#include "core/hf/model_config.h"
#include "core/hf/model_weights.h"
#include "core/weights/checkpoint.h"
#include "core/weights/model_files.h"
#include "core/weights/safetensors.h"
#include "tests/backends/libtorch/model/small_models.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

worker::LlamaCanon make_model(const config::ModelConfig& config) {
  return worker::LlamaCanon(config, at::TensorOptions(at::kFloat));
}

at::Tensor logits_of(const worker::LlamaCanon& model) {
  const at::NoGradGuard no_grad;
  const at::Tensor ids = at::arange(2 * 11, at::TensorOptions(at::kInt)).remainder(29);
  return model.logits(ids.to(at::kInt).view({2, 11}));
}

/// Writes the model's weights as a checkpoint and exports that to `folder`/out.
hf::Exported leave(const worker::LlamaCanon& model,
                   const std::filesystem::path& folder,
                   const hf::ExportOptions& options) {
  std::vector<at::Tensor> owners;
  hf::ExportSource source;
  source.model = model.config();
  source.max_positions = 16;
  source.checkpoint = weights::write_checkpoint(
      folder / "checkpoints", {}, worker::views_of(model.named_weights(), owners), {});
  return hf::export_model(source, folder / "out", options);
}

/// The model that a folder holds, as config.json describes it.
worker::LlamaCanon come_back(const std::filesystem::path& folder) {
  const hf::ReadConfig config =
      hf::read_config(nlohmann::json::parse(read_file(folder / "config.json")));
  const weights::ModelFiles files(folder);
  const auto named = hf::model_weights(config.model, files.tensors());
  worker::LlamaCanon model = make_model(config.model);
  worker::load_beginning(model, 0, folder.string(), weights::content_hash(named));
  return model;
}

TEST_CASE("every architecture comes back from its export with the same bits in every logit",
          "[worker]") {
  for (const config::ModelConfig& config : small_variants()) {
    worker::LlamaCanon model = make_model(config);
    worker::load_initial(model, 5);
    for (const int64_t shard_bytes : {weights::default_shard_bytes, int64_t{4000}}) {
      const TemporaryFolder folder;
      hf::ExportOptions options;
      options.shard_bytes = shard_bytes;
      leave(model, folder.path(), options);
      INFO("canon " << config.canon.set);
      REQUIRE(at::equal(logits_of(come_back(folder / "out")), logits_of(model)));
    }
  }
}

TEST_CASE("a bfloat16 export comes back as the rounded weights", "[worker]") {
  worker::LlamaCanon model = make_model(small_model("ABCD", config::PositionKind::rope));
  worker::load_initial(model, 5);
  for (const auto& [dtype, type] : {std::pair(weights::Dtype::bf16, at::kBFloat16),
                                    std::pair(weights::Dtype::f16, at::kHalf)}) {
    const TemporaryFolder folder;
    hf::ExportOptions options;
    options.dtype = dtype;
    leave(model, folder.path(), options);
    const worker::LlamaCanon back = come_back(folder / "out");
    const worker::NamedTensors before = model.named_weights();
    const worker::NamedTensors after = back.named_weights();
    for (size_t i = 0; i < before.size(); ++i) {
      REQUIRE(at::equal(after[i].second, before[i].second.to(type).to(at::kFloat)));
    }
  }
}

TEST_CASE("a checkpoint of float32 or bfloat16 weights loads into either", "[worker]") {
  const config::ModelConfig config = small_model("ABCD", config::PositionKind::rope);
  for (const at::ScalarType stored : {at::kFloat, at::kBFloat16}) {
    worker::LlamaCanon saved(config, at::TensorOptions(stored));
    worker::load_initial(saved, 5);
    const TemporaryFolder folder;
    std::vector<at::Tensor> owners;
    const std::filesystem::path checkpoint = weights::write_checkpoint(
        folder.path(), {}, worker::views_of(saved.named_weights(), owners), {});
    for (const at::ScalarType loaded : {at::kFloat, at::kBFloat16}) {
      worker::LlamaCanon model(config, at::TensorOptions(loaded));
      worker::load_beginning(model, 0, checkpoint.string(), "");
      const worker::NamedTensors before = saved.named_weights();
      const worker::NamedTensors after = model.named_weights();
      for (size_t i = 0; i < before.size(); ++i) {
        REQUIRE(at::equal(after[i].second, before[i].second.to(loaded)));
      }
    }
  }
}

TEST_CASE("weights that changed since the run was planned are refused", "[worker]") {
  worker::LlamaCanon model = make_model(small_model("", config::PositionKind::rope));
  worker::load_initial(model, 5);
  const TemporaryFolder folder;
  leave(model, folder.path(), {});
  const std::string message = error_of(
      [&] { worker::load_beginning(model, 0, (folder / "out").string(), "another hash"); });
  REQUIRE(message.find("are no longer those that the run was planned with") != std::string::npos);
}

TEST_CASE("weights of another model are refused by name", "[worker]") {
  worker::LlamaCanon model = make_model(small_model("", config::PositionKind::rope));
  worker::load_initial(model, 5);
  const TemporaryFolder folder;
  leave(model, folder.path(), {});
  worker::LlamaCanon canon = make_model(small_model("A", config::PositionKind::rope));
  const std::string message =
      error_of([&] { worker::load_beginning(canon, 0, (folder / "out").string(), ""); });
  REQUIRE(message.find("missing 2: 'model.layers.0.canonA.weight'") != std::string::npos);
}

TEST_CASE("data at an odd address is read", "[worker]") {
  worker::LlamaCanon model = make_model(small_model("", config::PositionKind::rope));
  worker::load_initial(model, 5);
  std::vector<at::Tensor> owners;
  auto views = worker::views_of(model.named_weights(), owners);
  const TemporaryFolder folder;
  weights::write_safetensors(folder / "aligned", views);
  // The header one blank longer: the data begins at an odd address.
  std::string bytes = read_file(folder / "aligned");
  const auto length = static_cast<unsigned char>(bytes[0]);
  REQUIRE(length < 255);
  bytes[0] = static_cast<char>(length + 1);
  size_t header = 0;
  for (size_t i = 0; i < 8; ++i) header |= size_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  bytes.insert(8 + header - 1, " ");
  const auto path = folder.write("odd/model.safetensors", bytes);
  worker::LlamaCanon back = make_model(model.config());
  worker::load_beginning(back, 0, path.parent_path().string(), weights::content_hash(views));
  REQUIRE(at::equal(logits_of(back), logits_of(model)));
}

}  // namespace
}  // namespace forge::tests
