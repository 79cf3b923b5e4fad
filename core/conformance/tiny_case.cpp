#include "core/conformance/tiny_case.h"

#include <algorithm>

#include "core/base/random.h"
#include "core/base/text.h"
#include "core/config/json.h"
#include "core/data/dataset.h"
#include "core/data/token_file_writer.h"

namespace forge::conformance {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr int vocabulary = 300;
constexpr int seq_len = 16;
constexpr int batch_size = 4;
constexpr int64_t train_tokens = 4000;
constexpr int64_t evaluation_tokens = 400;

config::Experiment tiny_experiment() {
  config::Experiment e;
  e.name = "backend test";
  e.profile = "full";
  e.model.vocab_size = e.tokenizer.vocab_size = vocabulary;
  e.model.hidden_size = 16;
  e.model.intermediate_size = 32;
  e.model.num_layers = 1;
  e.model.num_heads = e.model.num_kv_heads = 2;
  e.model.head_dim = 8;
  e.data.source = "text";
  e.data.order = config::RowOrder::sequential;
  e.train.batch_size = batch_size;
  e.train.seq_len = seq_len;
  e.train.max_steps = tiny_steps;
  e.train.deterministic = true;
  e.train.log_every = 1;
  e.train.eval_every = 0;
  e.train.checkpoint_every = tiny_checkpoint_every;
  e.train.eval_rows = 8;
  e.train.eval_batch_size = 4;
  e.optimizer.lr = 1e-3;
  e.schedule.type = "constant";
  return e;
}

void use_supported_values(Json& experiment, const protocol::Supports& supports) {
  for (const auto& [key, values] : supports.config.items()) {
    std::string pointer;
    for (const std::string& part : split(key, '.')) pointer += "/" + part;
    const Json::json_pointer place(pointer);
    if (!experiment.contains(place) || !values.is_array() || values.empty()) continue;
    if (std::find(values.begin(), values.end(), experiment[place]) == values.end())
      experiment[place] = values.front();
  }
}

/// Ids in which one foretells the next, now and then.
void write_tokens(const fs::path& path, int64_t count, uint64_t stream) {
  RandomStream random(1, stream);
  std::vector<int32_t> ids = {5};
  while (static_cast<int64_t>(ids.size()) < count) {
    const bool follows = random.below(4) != 0;
    ids.push_back(follows ? (ids.back() * 7 + 3) % vocabulary
                          : static_cast<int32_t>(random.below(vocabulary)));
  }
  data::TokenFileWriter writer(path, vocabulary, std::string(32, '0'));
  writer.append(ids.data(), ids.size(), {0});
  writer.finish();
}

protocol::TokenSource source_of(const fs::path& path, int64_t tokens) {
  protocol::TokenSource source;
  source.path = fs::absolute(path).string();
  source.rows = data::rows_of(tokens, seq_len, data::LastRow::whole);
  return source;
}

}  // namespace

TinyCase make_tiny_case(const fs::path& folder, const std::optional<protocol::Supports>& supports) {
  TinyCase tiny;
  tiny.experiment = config::to_json(tiny_experiment());
  if (supports) use_supported_values(tiny.experiment, *supports);
  write_tokens(folder / "train.tokens", train_tokens, 1);
  write_tokens(folder / "evaluation.tokens", evaluation_tokens, 2);
  tiny.train_tokens = source_of(folder / "train.tokens", train_tokens);
  tiny.evaluation_tokens = source_of(folder / "evaluation.tokens", evaluation_tokens);
  return tiny;
}

protocol::Request training_request(const TinyCase& tiny, const fs::path& run_dir, int64_t steps) {
  protocol::Request request;
  request.job = protocol::Job::train;
  request.run_dir = fs::absolute(run_dir).string();
  request.experiment = tiny.experiment;
  request.experiment["train"]["max_steps"] = steps;
  request.train_tokens = {tiny.train_tokens};
  request.evaluation_tokens = {tiny.evaluation_tokens};
  request.device = "cpu";
  request.threads = 1;
  return request;
}

}  // namespace forge::conformance
