#pragma once

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <exception>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "backends/libtorch/worker/jobs.h"
#include "backends/libtorch/worker/memory.h"
#include "backends/libtorch/worker/process_group.h"
#include "backends/libtorch/worker/trainer.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/config/experiment.h"
#include "core/data/rows/token_file.h"
#include "tests/support/model_variants.h"
#include "tests/support/support.h"

namespace forge::tests {

/// A Llama of a few thousand weights with grouped queries.
inline model::ModelConfig small_model(const std::string& canon_set, model::PositionKind position) {
  model::ModelConfig model = small_llama();
  model.canon.set = canon_set;
  model.attention.position.kind = position;
  return model;
}

/// The architectures of the canon project, small, and every variant.
inline std::vector<model::ModelConfig> small_variants() {
  using model::PositionKind;
  std::vector<model::ModelConfig> variants;
  for (const char* set : {"", "A", "B", "C", "D", "AB", "AC", "BD", "ABCD"}) {
    for (const PositionKind kind : {PositionKind::rope, PositionKind::nope})
      variants.push_back(small_model(set, kind));
  }
  model::ModelConfig full = small_model("ABCD", PositionKind::rope);
  full.attention.qk_norm = model::QkNorm::full;
  full.canon.activation = model::Activation::silu;
  full.canon.kernel = 3;
  variants.push_back(full);
  model::ModelConfig per_head = small_model("BD", PositionKind::rope);
  per_head.attention.qk_norm = model::QkNorm::per_head;
  per_head.canon.residual = false;
  per_head.attention.position.pairing = model::RopePairing::lingua;
  per_head.attention.position.rope_dim = 2;
  per_head.tie_embeddings = true;
  variants.push_back(per_head);
  for (const ModelVariant& variant : all_variants()) variants.push_back(model_of(variant.change));
  return variants;
}

/// Whether it has a mixer that does not keep the documents of a row apart.
inline bool crosses_documents(const model::ModelConfig& model) {
  const std::vector<const model::BlockKind*> kinds = model::kinds_in(model);
  return std::any_of(kinds.begin(), kinds.end(), [](const model::BlockKind* kind) {
    return kind->crosses_documents;
  });
}

/// What a small model differs in from the others.
inline std::string describe(const model::ModelConfig& model) {
  config::Experiment experiment;
  experiment.model = model;
  return config::to_json(experiment).at("model").dump();
}

using nlohmann::json;

/// A training job on random tokens in folders of its own.
class Job {
 public:
  Job() {
    experiment.model = small_model("ABCD", model::PositionKind::rope);
    experiment.train.batch_size = 2;
    experiment.train.seq_len = 8;
    experiment.train.max_steps = 10;
    experiment.train.log_every = 4;
    experiment.train.eval_every = 5;
    experiment.train.eval_batch_size = 3;
    experiment.schedule.warmup_steps = 3;
    experiment.schedule.cooldown_steps = 100;
    write_tokens("train.tokens", 300, 1);
    write_tokens("evaluation.tokens", 80, 2);
  }

  worker::TokenSource tokens(const std::string& name) const {
    return {(folder_ / name).string(), 0, document_start};
  }

  std::vector<json> run(const std::string& run_name, const std::string& resume_from = "") {
    return train(request_of(run_name, resume_from));
  }

  /// The same by several processes, each a thread here. Events of the first one; what any of them
  /// throws is thrown, and only where there is nothing else that one has lost another.
  std::vector<json> run_processes(const std::string& run_name,
                                  int count,
                                  const std::string& resume_from = "",
                                  int hosts = 1) {
    worker::Request request = request_of(run_name, resume_from);
    const TemporaryFolder meeting;
    request.processes =
        worker::Processes{count, "file:" + (meeting / "file").string(), 60, {}, 0, hosts};
    std::vector<std::vector<json>> events(static_cast<size_t>(count));
    std::vector<std::exception_ptr> thrown(events.size());
    std::vector<std::thread> threads;
    for (int rank = 0; rank < count; ++rank) {
      request.processes->rank = rank;
      threads.emplace_back([&, request, index = static_cast<size_t>(rank)] {
        try {
          events[index] = train(request);
        } catch (...) {
          thrown[index] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    std::exception_ptr lost;
    for (const std::exception_ptr& problem : thrown) {
      try {
        if (problem) std::rethrow_exception(problem);
      } catch (const libtorch::LostProcess&) {
        if (!lost) lost = problem;
      }
    }
    if (lost) std::rethrow_exception(lost);
    return events[0];
  }

  void more_evaluation_rows() { write_tokens("evaluation.tokens", 4000, 2); }

  std::filesystem::path run_dir(const std::string& name) const { return folder_ / name; }

  config::Experiment experiment;
  std::optional<int32_t> document_start;
  int64_t evaluation_rows = 0;  ///< 0: all
  std::vector<worker::TokenSource> validation_tokens;
  int64_t stop_after = 0;  ///< of the request
  bool completed = false;

 private:
  worker::Request request_of(const std::string& run_name, const std::string& resume_from) const {
    worker::Request request;
    request.job = worker::Job::train;
    request.run_dir = (folder_ / run_name).string();
    request.identity = "0123456789ab";
    request.experiment = config::to_json(experiment);
    request.train_tokens = {tokens("train.tokens")};
    request.evaluation_tokens = {tokens("evaluation.tokens")};
    request.evaluation_tokens[0].rows = evaluation_rows;
    request.validation_tokens = validation_tokens;
    request.resume_from = resume_from;
    request.stop_after = stop_after;
    std::filesystem::create_directories(request.run_dir);
    return request;
  }

  std::vector<json> train(const worker::Request& request) {
    const int rank = request.processes ? request.processes->rank : 0;
    const std::string log = request.run_dir + "/lines" + (rank > 0 ? std::to_string(rank) : "");
    const int fd = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
    const bool done =
        libtorch::train(request, at::Device("cpu"), libtorch::EventWriter(fd, rank == 0));
    if (rank == 0) completed = done;
    ::close(fd);
    std::vector<json> events;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) events.push_back(json::parse(line));
    return events;
  }

  void write_tokens(const std::string& name, int count, uint64_t seed) {
    data::TokenFileWriter writer(
        folder_ / name, experiment.model.vocab_size, hash_hex("tokenizer"));
    RandomStream random(seed, 1);
    for (int i = 0; i < count; ++i) {
      const int32_t id = static_cast<int32_t>(random.below(29));
      writer.append(&id, 1);
    }
    writer.finish();
  }

  TemporaryFolder folder_;
};

inline std::vector<json> of_kind(const std::vector<json>& events, const std::string& kind) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("event") == kind) found.push_back(event);
  }
  return found;
}

/// Everything of the events that must be the same bits in two runs of the same job.
inline std::vector<json> numbers(const std::vector<json>& events) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("event") == "train") {
      found.push_back({event.at("step"),
                       event.at("loss"),
                       event.at("gradient_norm"),
                       event.at("learning_rate")});
    }
    if (event.at("event") == "evaluation")
      found.push_back({event.at("step"), event.at("loss"), event.at("tokens")});
  }
  return found;
}

inline std::string named(int64_t step) {
  char name[16];
  std::snprintf(name, sizeof name, "%09d", int(step));
  return name;
}

/// The numbers of the steps after `step`.
inline std::vector<json> numbers_after(const std::vector<json>& events, int64_t step) {
  std::vector<json> later;
  for (const json& number : numbers(events)) {
    if (number.at(0) > step) later.push_back(number);
  }
  return later;
}

/// Makes CPU tensors count as they do in the worker.
inline void install_allocator_once() {
  static const bool installed = [] {
    libtorch::install_counting_allocator();
    return true;
  }();
  static_cast<void>(installed);
}

/// Gradients under the names of named_weights(); zeros for a weight without gradient.
inline libtorch::NamedTensors named_gradients(const libtorch::Model& model) {
  return model.named([](const at::Tensor& stored) {
    return stored.grad().defined() ? stored.grad() : at::zeros_like(stored.detach());
  });
}

/// The totals of the steps since the last call.
inline libtorch::StepTotals take_totals(libtorch::Trainer& trainer) {
  const libtorch::StepTotals totals = trainer.optimizer().totals();
  trainer.optimizer().set_totals({});
  return totals;
}

}  // namespace forge::tests
