#include "core/run/token_sources.h"

namespace forge::run {
namespace {

std::vector<protocol::TokenSource> sources_of(const data::PreparedData& prepared,
                                              const std::vector<data::PreparedRows>& files) {
  std::vector<protocol::TokenSource> sources;
  for (const data::PreparedRows& file : files) {
    protocol::TokenSource source;
    source.path = file.tokens.string();
    source.rows = file.rows;
    source.document_start = prepared.document_start;
    source.pad_id = prepared.pad_id;
    source.name = file.name;
    source.weight = file.weight;
    source.task = prepared.task;
    source.first_row = file.first_row;
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace

std::vector<protocol::TokenSource> training_sources(const data::PreparedData& prepared) {
  return sources_of(prepared, prepared.train);
}

std::vector<protocol::TokenSource> evaluation_sources(const data::PreparedData& prepared) {
  return sources_of(prepared, prepared.evaluation);
}

std::vector<protocol::TokenSource> selection_sources(const data::PreparedData& prepared) {
  return sources_of(prepared, prepared.selection);
}

}  // namespace forge::run
