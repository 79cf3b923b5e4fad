#include "core/run/inputs_hash.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/base/files.h"
#include "core/base/hash.h"
#include "core/base/json.h"
#include "core/data/rows/token_file.h"
#include "core/run/request.h"

namespace forge::run {
namespace {

using Json = nlohmann::json;

/// What blocks in Python said of their weights, by the blocks' names: it follows from their source,
/// which alone is in the identity.
Json own_weights(const Json& experiment) {
  Json weights = Json::object();
  const Json* const blocks = find_value(experiment, "model.blocks");
  if (!blocks) return weights;
  for (const auto& [name, block] : blocks->items()) {
    if (const Json* const of_block = find_value(block, "described.weights"))
      weights[name] = *of_block;
  }
  return weights;
}

/// An older forge compared JSON Lines by their beginning, too, and runs that it planned still do.
enum class Compared { text_whole, plain_text_whole };

/// Whether a longer run makes the source's file longer: that of generated text.
bool may_grow(const Json& experiment, const std::string& source, Compared compared) {
  const Json* data = find_value(experiment, "data");
  if (data && !source.empty() && data->contains("sources")) {
    const Json& sources = data->at("sources");
    data = sources.contains(source) ? &sources.at(source) : nullptr;
  }
  if (!data || !data->is_object()) return false;
  const auto kind = data->find("source");
  if (kind == data->end() || *kind == "text") return false;
  return *kind != "jsonl" || compared == Compared::plain_text_whole;
}

/// Of the ids that the source's rows read, at most a million, which follow from how they are
/// generated like all others.
std::string beginning_hash(const data::TokenFile& file,
                           const worker::TokenSource& source,
                           const Json& experiment) {
  const Json* const seq_len = find_value(experiment, "train.seq_len");
  const Json* const kind = find_value(experiment, "data.rows");
  constexpr int64_t most = int64_t{1} << 20;
  data::TokenSpan last;
  if (source.rows > 0 && seq_len)
    last = file.row_span(
        source.first_row + source.rows - 1, seq_len->get<int>(), kind && *kind == "padded");
  std::vector<int32_t> ids(size_t(std::clamp<int64_t>(last.first + last.count, 0, most)));
  file.read(0, int64_t(ids.size()), ids.data());
  Hasher hasher;
  hasher.update(std::to_string(last.first) + " " + std::to_string(last.count) + "\n");
  hasher.update(
      std::string_view(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof ids[0]));
  return hasher.hex();
}

std::string hash_of(const worker::TokenSource& source, const Json& experiment, Compared compared) {
  const data::TokenFile file(source.path);
  return may_grow(experiment, source.name, compared) ? beginning_hash(file, source, experiment)
                                                     : file.content_hash();
}

std::string hash_of(const worker::Request& request, Compared compared) {
  worker::Request inputs;
  inputs.train_tokens = request.train_tokens;
  inputs.evaluation_tokens = request.evaluation_tokens;
  inputs.validation_tokens = request.validation_tokens;
  inputs.experiment = own_weights(request.experiment);
  inputs.answers = request.answers;
  inputs.answer_rows = request.answer_rows;
  for (auto* sources :
       {&inputs.train_tokens, &inputs.evaluation_tokens, &inputs.validation_tokens}) {
    for (worker::TokenSource& source : *sources) {
      const bool is_there = !source.path.empty() && path_exists(source.path);
      source.path = is_there ? hash_of(source, request.experiment, compared) : "";
    }
  }
  return hash_hex(worker::to_line(inputs));
}

}  // namespace

std::string tokens_hash(const worker::TokenSource& source, const Json& experiment) {
  return hash_of(source, experiment, Compared::text_whole);
}

std::string inputs_hash(const worker::Request& request) {
  return hash_of(request, Compared::text_whole);
}

namespace {

void require_sound_tokens(const worker::Request& request) {
  for (const auto* sources :
       {&request.train_tokens, &request.evaluation_tokens, &request.validation_tokens}) {
    for (const worker::TokenSource& source : *sources) {
      // A task makes its tokens itself, and of a file that is gone the worker tells.
      if (source.path.empty() || !path_exists(source.path)) continue;
      try {
        const data::TokenFile file(source.path);
        if (file.file_bytes() <= data::always_checked_bytes) file.verify_hash();
      } catch (const Error& problem) {
        throw Error("the run's tokens cannot be used: " + problem.message(),
                    "'forge runs resume' of it prepares them anew",
                    ExitCode::failed)
            .with_cause(problem.cause());
      }
    }
  }
}

}  // namespace

void require_planned_inputs(const RunRecord& record, const worker::Request& request) {
  require_sound_tokens(request);
  if (record.inputs_hash.empty()) return;
  for (const Compared compared : {Compared::text_whole, Compared::plain_text_whole})
    if (hash_of(request, compared) == record.inputs_hash) return;
  throw Error("run '" + record.id +
                  "' cannot begin: the rows or blocks of its request.json are not those that it "
                  "was planned with",
              "restore the file and the token files; " + rewriting_text(record),
              ExitCode::failed);
}

}  // namespace forge::run
