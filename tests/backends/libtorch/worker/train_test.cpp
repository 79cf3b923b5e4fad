#include "tests/support/torch_catch.h"

#include <fcntl.h>
#include <unistd.h>

#include <fstream>

#include "backends/libtorch/worker/train.h"
#include "core/base/hash.h"
#include "core/base/random.h"
#include "core/config/json.h"
#include "core/data/token_file.h"
#include "core/data/token_file_writer.h"
#include "tests/backends/libtorch/model/small_models.h"
#include "tests/support/support.h"

namespace forge::tests {
namespace {

using nlohmann::json;

/// A training job on random tokens in folders of its own.
class Job {
 public:
  Job() {
    experiment.model = small_model("ABCD", config::PositionKind::rope);
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

  protocol::TokenSource tokens(const std::string& name) const {
    return {(folder_ / name).string(), 0, document_start};
  }

  std::vector<json> run(const std::string& run_name, const std::string& resume_from = "") {
    protocol::Request request;
    request.job = protocol::Job::train;
    request.run_dir = (folder_ / run_name).string();
    request.experiment = config::to_json(experiment);
    request.train_tokens = {tokens("train.tokens")};
    request.evaluation_tokens = {tokens("evaluation.tokens")};
    request.resume_from = resume_from;
    std::filesystem::create_directories(request.run_dir);
    const std::string log = request.run_dir + "/lines";
    const int fd = ::open(log.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
    completed = worker::train(request, at::Device("cpu"), worker::EventWriter(fd));
    ::close(fd);
    std::vector<json> events;
    std::ifstream file(log);
    for (std::string line; std::getline(file, line);) events.push_back(json::parse(line));
    return events;
  }

  std::filesystem::path run_dir(const std::string& name) const { return folder_ / name; }

  config::Experiment experiment;
  std::optional<int32_t> document_start;
  bool completed = false;

 private:
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

std::vector<json> of_kind(const std::vector<json>& events, const std::string& kind) {
  std::vector<json> found;
  for (const json& event : events) {
    if (event.at("event") == kind) found.push_back(event);
  }
  return found;
}

/// Everything of the events that must be the same bits in two runs of the same job.
std::vector<json> numbers(const std::vector<json>& events) {
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

TEST_CASE("a training job reports its windows and evaluations and its end", "[worker]") {
  Job job;
  const std::vector<json> events = job.run("run");
  REQUIRE(job.completed);
  REQUIRE(of_kind(events, "started").at(0).at("max_steps") == 10);
  REQUIRE(of_kind(events, "started").at(0).at("tokens_per_step") == 16);
  const std::vector<json> train = of_kind(events, "train");
  REQUIRE(train.size() == 3);  // steps 4 and 8 and the last two
  REQUIRE(train.back().at("step") == 10);
  REQUIRE(train.back().at("tokens") == 160);
  const std::vector<json> evaluations = of_kind(events, "evaluation");
  REQUIRE(evaluations.size() == 2);                // steps 5 and 10
  REQUIRE(evaluations.back().at("tokens") == 72);  // (80 - 1) / 8 rows of 8
  const json finished = events.back();
  REQUIRE(finished.at("event") == "finished");
  REQUIRE(finished.at("completed") == true);
  REQUIRE(finished.at("eval_loss") == evaluations.back().at("loss"));
  REQUIRE(finished.at("tokens_per_second").get<double>() > 0);
}

TEST_CASE("the same job twice gives the same losses bit for bit", "[worker]") {
  Job job;
  const std::vector<json> first = job.run("first");
  REQUIRE(numbers(first) == numbers(job.run("second")));
  job.experiment.seed = 43;
  REQUIRE(numbers(first) != numbers(job.run("other")));
}

TEST_CASE("a document mask changes the losses and needs to know what begins a document",
          "[worker]") {
  Job job;
  const std::vector<json> whole = job.run("whole");
  job.document_start = 7;
  REQUIRE(numbers(job.run("not asked for")) == numbers(whole));
  job.experiment.train.document_mask = true;
  const std::vector<json> divided = job.run("divided");
  REQUIRE(numbers(divided) != numbers(whole));
  REQUIRE(numbers(divided) == numbers(job.run("divided again")));
  job.document_start.reset();
  REQUIRE(error_of([&] { job.run("unknown"); }).find("what begins a document") !=
          std::string::npos);
}

TEST_CASE("a job that resumes from any checkpoint ends like one that was never interrupted",
          "[worker]") {
  Job job;
  job.experiment.train.checkpoint_every = 1;
  const std::vector<json> straight = job.run("straight");
  // Only the newest two are kept: run to each step alone, then go on from there.
  for (const int64_t stop : {1, 3, 4, 6, 9}) {
    INFO("resumed at step " << stop);
    Job again;
    again.experiment = job.experiment;
    again.experiment.train.max_steps = stop;
    again.run("run");
    again.experiment.train.max_steps = 10;
    char name[16];
    std::snprintf(name, sizeof name, "%09d", int(stop));
    const std::vector<json> resumed =
        again.run("run", (again.run_dir("run") / "checkpoints" / name).string());
    REQUIRE(of_kind(resumed, "started").at(0).at("first_step") == stop);
    REQUIRE(resumed.back().at("eval_loss") == straight.back().at("eval_loss"));
    REQUIRE(
        hash_file(again.run_dir("run") / "checkpoints" / "000000010" / "weights.safetensors") ==
        hash_file(job.run_dir("straight") / "checkpoints" / "000000010" / "weights.safetensors"));
  }
}

TEST_CASE("a loss that is no number ends the job with a hint", "[worker]") {
  Job job;
  job.experiment.optimizer.lr = 1e30;
  job.experiment.schedule.type = "constant";
  const std::string message = error_of([&] { job.run("run"); });
  REQUIRE(message.find("not a finite number") != std::string::npos);
  REQUIRE(message.find("optimizer.lr") != std::string::npos);
}

}  // namespace
}  // namespace forge::tests
