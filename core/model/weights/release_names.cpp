#include "core/model/weights/release_names.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "core/base/text.h"
#include "core/model/kinds.h"
#include "core/model/parameters.h"

namespace forge::weights {
namespace {

using Tensors = std::map<std::string, TensorView>;

/// How a name begins in forge, and in the files.
struct Renaming {
  std::string ours, theirs;
};

/// The names of a family: of all weights, then of a layer's behind its number. Of each list the
/// first that fits counts.
struct Family {
  std::string kind;
  std::vector<Renaming> of_model, of_layer;
};

const std::vector<Family>& families() {
  static const std::vector<Family> all = {{"gla5",
                                           {{"model.embed_tokens.", "model.embeddings."}},
                                           {{"input_layernorm.", "attn_norm."},
                                            {"post_attention_layernorm.", "mlp_norm."},
                                            {"gla5.g_norm.", "attn.g_norm_swish_gate."},
                                            {"gla5.", "attn."}}},
                                          {"gdn2",
                                           {{"model.embed_tokens.", "model.embeddings."}},
                                           {{"input_layernorm.", "attn_norm."},
                                            {"post_attention_layernorm.", "mlp_norm."},
                                            {"gdn2.", "attn."}}},
                                          {"mamba2",
                                           {{"model.embed_tokens.", "backbone.embeddings."},
                                            {"model.norm.", "backbone.norm_f."},
                                            {"model.", "backbone."}},
                                           {{"input_layernorm.", "norm."},
                                            {"post_attention_layernorm.", "pre_mlp_layernorm."},
                                            {"mamba2.", "mixer."}}}};
  return all;
}

const Family* find_family(const std::string& kind) {
  const auto found = std::find_if(families().begin(), families().end(), [&](const Family& family) {
    return family.kind == kind;
  });
  return found == families().end() ? nullptr : &*found;
}

std::string renamed(const std::string& name, const std::vector<Renaming>& renamings) {
  for (const auto& [ours, theirs] : renamings) {
    if (starts_with(name, ours)) return theirs + name.substr(ours.size());
  }
  return name;
}

/// Behind "model.layers.7."; 0 for a weight of no layer.
size_t layer_prefix(const std::string& name) {
  const std::string layers = "model.layers.";
  return starts_with(name, layers) ? name.find('.', layers.size()) + 1 : 0;
}

std::string file_name(const std::string& name, const Family& family) {
  const size_t prefix = layer_prefix(name);
  if (prefix == 0) return renamed(name, family.of_model);
  return renamed(name.substr(0, prefix), family.of_model) +
         renamed(name.substr(prefix), family.of_layer);
}

/// The matrix of a layer in which gate and up lie on one another, the gate first; "" where they do
/// not.
std::string gate_and_up(const model::ModelConfig& model, const std::string& kind) {
  if (!model.mlp.is_gated()) return "";
  if (kind == "gla5") return "mlp.gate_proj.weight";
  return kind == "mamba2" || model.canon.has('D') ? "mlp.both_proj.weight" : "";
}

/// A name as release_places has it: lingua puts another word before all names, and models with
/// zeyuan_layernorm (all of 8B and GLA5Canon-3B-lr0.005) call GLA5's norm g_norm.
std::string usual_name(const std::string& name) {
  const std::string lingua = "trans.", other_norm = ".attn.g_norm.";
  std::string usual = starts_with(name, lingua) ? name.substr(lingua.size()) : name;
  const size_t at = usual.find(other_norm);
  if (at != std::string::npos) usual.replace(at, other_norm.size(), ".attn.g_norm_swish_gate.");
  return usual;
}

/// A Mamba2 without b has a convolution all the same, of zeros, in place of which its code computes
/// nothing.
bool is_unused_conv(const std::string& name, const model::ModelConfig& model) {
  return release_kind(model) == "mamba2" && !model.canon.has('b') &&
         name.find(".mixer.conv1d.") != std::string::npos;
}

TensorView rows_of(const TensorView& whole, int64_t first, int64_t count) {
  const size_t row = whole.shape[0] > 0 ? whole.bytes / static_cast<size_t>(whole.shape[0]) : 0;
  TensorView part = whole;
  part.shape[0] = count;
  part.data = whole.data + row * static_cast<size_t>(first);
  part.bytes = row * static_cast<size_t>(count);
  return part;
}

}  // namespace

std::string release_kind(const model::ModelConfig& model) {
  const std::string& kind = model.mixer(0);
  for (const model::LayerSpec& spec : model.layers) {
    if (spec.mixer != kind || !spec.settings.empty()) return "";
  }
  return find_family(kind) ? kind : "";
}

std::map<std::string, ReleasePlace> release_places(const model::ModelConfig& model) {
  const std::string kind = release_kind(model);
  const Family* family = find_family(kind);
  if (!family) throw Error("no released code has such a model");
  const std::string fused = gate_and_up(model, kind);
  std::map<std::string, ReleasePlace> places;
  for (const model::Parameter& parameter : model::parameters(model)) {
    const std::string& name = parameter.name;
    const int64_t rows = parameter.shape[0];
    ReleasePlace place{file_name(name, *family), 0, rows, rows};
    const bool is_gate = ends_with(name, ".mlp.gate_proj.weight");
    if (!fused.empty() && (is_gate || ends_with(name, ".mlp.up_proj.weight"))) {
      const std::string layer = renamed(name.substr(0, layer_prefix(name)), family->of_model);
      place = {layer + fused, is_gate ? 0 : rows, rows, 2 * rows};
    }
    places[name] = place;
  }
  return places;
}

Tensors from_release(const model::ModelConfig& model, const Tensors& tensors) {
  if (release_kind(model).empty()) return tensors;
  if (tensors.count("model.embed_tokens.weight") > 0) return tensors;
  Tensors theirs, ours;
  for (const auto& [name, tensor] : tensors) {
    if (!is_unused_conv(name, model)) theirs[usual_name(name)] = tensor;
  }
  std::set<std::string> used;
  for (const auto& [name, place] : release_places(model)) {
    const auto found = theirs.find(place.name);
    if (found == theirs.end()) continue;
    used.insert(place.name);
    const TensorView& whole = found->second;
    // One of another shape stays as it is, which is said of it.
    const bool is_right = !whole.shape.empty() && whole.shape[0] == place.file_rows;
    ours[name] = is_right ? rows_of(whole, place.first_row, place.rows) : whole;
  }
  for (const auto& [name, tensor] : theirs) {
    if (used.count(name) == 0) ours[name] = tensor;
  }
  return ours;
}

ReleaseTensors::ReleaseTensors(const model::ModelConfig& model, const Tensors& weights) {
  const auto buffer = [&](size_t bytes) { return copies_.emplace_back(bytes).data(); };
  std::map<std::string, std::byte*> filled;  // of tensors that several weights make
  for (const auto& [name, place] : release_places(model)) {
    const TensorView& weight = weights.at(name);
    TensorView& tensor = tensors_[place.name];
    if (place.rows == place.file_rows) {
      tensor = weight;
      continue;
    }
    const size_t row = weight.bytes / static_cast<size_t>(place.rows);
    std::byte*& bytes = filled[place.name];
    if (!bytes) {
      tensor = weight;
      tensor.shape[0] = place.file_rows;
      tensor.bytes = row * static_cast<size_t>(place.file_rows);
      tensor.data = bytes = buffer(tensor.bytes);
    }
    std::memcpy(bytes + row * static_cast<size_t>(place.first_row), weight.data, weight.bytes);
  }
  if (release_kind(model) != "mamba2" || model.canon.has('b')) return;
  const int64_t channels = model.mamba2.conv_width(model.hidden_size);
  TensorView zeros{Dtype::f32, {channels, 1, model::short_conv_taps}, nullptr, 0};
  zeros.bytes = static_cast<size_t>(channels * model::short_conv_taps) * bytes_of(zeros.dtype);
  zeros.data = buffer(zeros.bytes);
  for (int layer = 0; layer < model.num_layers; ++layer)
    tensors_["backbone.layers." + std::to_string(layer) + ".mixer.conv1d.weight"] = zeros;
}

}  // namespace forge::weights
