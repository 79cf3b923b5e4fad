#include <cstring>

#include <ATen/Parallel.h>

#include "backends/libtorch/worker/weights.h"
#include "core/huggingface/export_model.h"
#include "core/huggingface/model_config.h"
#include "core/model/parameters.h"
#include "core/model/weights/checkpoint.h"
#include "core/model/weights/model_files.h"
#include "core/model/weights/safetensors.h"
#include "tests/backends/libtorch/small_models.h"
#include "tests/support/support.h"
#include "tests/support/torch_catch.h"

namespace forge::tests {
namespace {

/// Large enough that threads share the numbers of a weight.
model::ModelConfig model_of_large_weights() {
  model::ModelConfig model = small_model("A", model::PositionKind::rope);
  model.vocab_size = 5003;
  return model;
}

TEST_CASE("weights are what one thread draws, whatever the number of threads", "[worker]") {
  const model::ModelConfig config = model_of_large_weights();
  const std::vector<model::Parameter> parameters = model::parameters(config);
  const int threads_before = at::get_num_threads();
  for (const int threads : {1, 2, 3, 7}) {
    at::set_num_threads(threads);
    libtorch::Model model(config, at::TensorOptions(at::kFloat));
    libtorch::load_initial(model, 42);
    const libtorch::NamedTensors weights = model.named_weights();
    for (size_t i = 0; i < parameters.size(); ++i) {
      INFO(threads << " threads, " << parameters[i].name);
      std::vector<float> expected(static_cast<size_t>(parameters[i].count()));
      model::draw_initial(parameters[i], 42, expected.data());
      const at::Tensor drawn = weights[i].second.contiguous();
      REQUIRE(std::memcmp(drawn.data_ptr(), expected.data(), drawn.nbytes()) == 0);
    }
  }
  at::set_num_threads(threads_before);
}

libtorch::Model make_model(const model::ModelConfig& config) {
  return libtorch::Model(config, at::TensorOptions(at::kFloat));
}

at::Tensor logits_of(const libtorch::Model& model) {
  const at::NoGradGuard no_grad;
  const at::Tensor ids = at::arange(2 * 11, at::TensorOptions(at::kInt)).remainder(29);
  return model.logits(ids.to(at::kInt).view({2, 11}));
}

/// Writes the model's weights as a checkpoint and exports that to `folder`/out.
huggingface::Exported leave(const libtorch::Model& model,
                            const std::filesystem::path& folder,
                            const huggingface::ExportOptions& options) {
  std::vector<at::Tensor> owners;
  huggingface::ExportSource source;
  source.model = model.config();
  source.max_positions = 16;
  source.checkpoint = weights::write_checkpoint(
      folder / "checkpoints", {}, libtorch::views_of(model.named_weights(), owners), {});
  return huggingface::export_model(source, folder / "out", options);
}

/// The model that a folder holds, as config.json describes it.
libtorch::Model come_back(const std::filesystem::path& folder) {
  const huggingface::ReadConfig config =
      huggingface::read_config(nlohmann::json::parse(read_file(folder / "config.json")));
  const weights::ModelFiles files(folder);
  const auto named = huggingface::model_weights(config.model, files.tensors());
  libtorch::Model model = make_model(config.model);
  libtorch::load_start_weights(model, 0, folder.string(), weights::content_hash(named));
  return model;
}

TEST_CASE("every architecture comes back from its export with the same bits in every logit",
          "[worker]") {
  for (const model::ModelConfig& config : small_variants()) {
    libtorch::Model model = make_model(config);
    libtorch::load_initial(model, 5);
    for (const int64_t shard_bytes : {weights::default_shard_bytes, int64_t{4000}}) {
      const TemporaryFolder folder;
      huggingface::ExportOptions options;
      options.shard_bytes = shard_bytes;
      leave(model, folder.path(), options);
      INFO("canon " << config.canon.set);
      REQUIRE(at::equal(logits_of(come_back(folder / "out")), logits_of(model)));
    }
  }
}

TEST_CASE("a bfloat16 export comes back as the rounded weights", "[worker]") {
  libtorch::Model model = make_model(small_model("ABCD", model::PositionKind::rope));
  libtorch::load_initial(model, 5);
  for (const auto& [dtype, type] : {std::pair(weights::Dtype::bf16, at::kBFloat16),
                                    std::pair(weights::Dtype::f16, at::kHalf)}) {
    const TemporaryFolder folder;
    huggingface::ExportOptions options;
    options.dtype = dtype;
    leave(model, folder.path(), options);
    const libtorch::Model back = come_back(folder / "out");
    const libtorch::NamedTensors before = model.named_weights();
    const libtorch::NamedTensors after = back.named_weights();
    for (size_t i = 0; i < before.size(); ++i) {
      REQUIRE(at::equal(after[i].second, before[i].second.to(type).to(at::kFloat)));
    }
  }
}

TEST_CASE("a checkpoint of float32 or bfloat16 weights loads into either", "[worker]") {
  const model::ModelConfig config = small_model("ABCD", model::PositionKind::rope);
  for (const at::ScalarType stored : {at::kFloat, at::kBFloat16}) {
    libtorch::Model saved(config, at::TensorOptions(stored));
    libtorch::load_initial(saved, 5);
    const TemporaryFolder folder;
    std::vector<at::Tensor> owners;
    const std::filesystem::path checkpoint = weights::write_checkpoint(
        folder.path(), {}, libtorch::views_of(saved.named_weights(), owners), {});
    for (const at::ScalarType loaded : {at::kFloat, at::kBFloat16}) {
      libtorch::Model model(config, at::TensorOptions(loaded));
      libtorch::load_start_weights(model, 0, checkpoint.string(), "");
      const libtorch::NamedTensors before = saved.named_weights();
      const libtorch::NamedTensors after = model.named_weights();
      for (size_t i = 0; i < before.size(); ++i) {
        REQUIRE(at::equal(after[i].second, before[i].second.to(loaded)));
      }
    }
  }
}

TEST_CASE("weights that changed since the run was planned are refused", "[worker]") {
  libtorch::Model model = make_model(small_model("", model::PositionKind::rope));
  libtorch::load_initial(model, 5);
  const TemporaryFolder folder;
  leave(model, folder.path(), {});
  const std::string message = error_of(
      [&] { libtorch::load_start_weights(model, 0, (folder / "out").string(), "another hash"); });
  REQUIRE(message.find("are no longer those that the run was planned with") != std::string::npos);
}

TEST_CASE("weights of another model are refused by name", "[worker]") {
  libtorch::Model model = make_model(small_model("", model::PositionKind::rope));
  libtorch::load_initial(model, 5);
  const TemporaryFolder folder;
  leave(model, folder.path(), {});
  libtorch::Model canon = make_model(small_model("A", model::PositionKind::rope));
  const std::string message =
      error_of([&] { libtorch::load_start_weights(canon, 0, (folder / "out").string(), ""); });
  REQUIRE(message.find("missing 2: 'model.layers.0.canonA.weight'") != std::string::npos);
}

TEST_CASE("data at an odd address is read", "[worker]") {
  libtorch::Model model = make_model(small_model("", model::PositionKind::rope));
  libtorch::load_initial(model, 5);
  std::vector<at::Tensor> owners;
  auto views = libtorch::views_of(model.named_weights(), owners);
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
  libtorch::Model back = make_model(model.config());
  libtorch::load_start_weights(back, 0, path.parent_path().string(), weights::content_hash(views));
  REQUIRE(at::equal(logits_of(back), logits_of(model)));
}

}  // namespace
}  // namespace forge::tests
