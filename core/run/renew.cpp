#include "core/run/renew.h"

#include "core/base/error.h"
#include "core/base/fs.h"
#include "core/run/token_sources.h"

namespace forge::run {
namespace {

void require_same(const RunRecord& record,
                  const std::string& what,
                  const std::string& theirs,
                  const std::string& ours,
                  const std::string& hint) {
  if (theirs == ours) return;
  throw Error("run '" + record.id + "' cannot go on here: its " + what + " is " + theirs +
                  " and would be " + ours,
              {},
              hint);
}

}  // namespace

protocol::Request request_of(const RunFolder& folder) {
  if (!fs::exists(folder.request_file())) {
    throw Error("run '" + folder.id() + "' is a model that was imported: it has nothing to train",
                {},
                "'forge run CONFIG --set train.initial_weights=" + folder.id() +
                    "' trains on from its weights");
  }
  return protocol::request_from_line(read_file(folder.request_file()));
}

void require_same_backend(const RunRecord& record, const BackendInfo& backend) {
  const Identity& identity = record.identity;
  const protocol::Environment& environment = backend.environment;
  const std::string other = "'forge run " + record.config + "' makes a new run for what is here";
  require_same(record, "backend", identity.backend, backend.hello.backend, other);
  require_same(record,
               "numerics version",
               std::to_string(identity.numerics_version),
               std::to_string(backend.hello.numerics_version),
               other);
  require_same(record, "device", identity.device_type, environment.device_type, other);
  require_same(record,
               "number of CPU threads",
               std::to_string(identity.threads),
               std::to_string(environment.device_type == "cpu" ? environment.threads : 0),
               other);
}

void renew_request(const RunFolder& folder,
                   protocol::Request request,
                   const data::PreparedData& data) {
  const RunRecord record = folder.record();
  const std::string hint = "bring the text back that the run was begun with, or begin a new run";
  require_same(record, "data", record.identity.data_fingerprint, data.data_fingerprint, hint);
  require_same(
      record, "tokenizer", record.identity.tokenizer_fingerprint, data.tokenizer_fingerprint, hint);
  request.run_dir = fs::absolute(folder.path()).string();
  request.train_tokens = training_sources(data);
  request.evaluation_tokens = evaluation_sources(data);
  request.selection_tokens = selection_sources(data);
  write_file_atomic(folder.request_file(), protocol::to_line(request) + "\n");
}

}  // namespace forge::run
