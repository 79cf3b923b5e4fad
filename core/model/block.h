#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.h"
#include "core/model/parameters.h"

/// What a kind of block is: all that forge knows of it without building it. A block adds to the
/// residual stream, x + f(norm(x)); a layer is a mixer, which looks at other tokens, and an MLP,
/// which does not. docs/MATHEMATICS.md has the formulas.
namespace forge::model {

struct ModelConfig;

/// A key with its value, for messages: "model.attention.num_heads 5".
inline std::string quoted(const std::string& key, int64_t value) {
  return key + " " + std::to_string(value);
}

/// How checks of a model speak of a config without knowing where its values came from.
class ConfigChecks {
 public:
  virtual ~ConfigChecks() = default;
  /// Runs one check, which throws Error. Returns whether it passed; throws where the first mistake
  /// shall end it all.
  virtual bool attempt(const std::function<void()>& check) = 0;
  /// An Error at the place of the key, of several that disagree, that was set last.
  virtual Error complaint(const std::vector<std::string>& keys,
                          const std::string& message,
                          const std::string& hint) const = 0;
  /// Notes that a key got its value from another one.
  virtual void derive(const std::string& key,
                      const std::string& from,
                      const std::string& value) = 0;
  /// A key that nothing reads because of the value of `because`: throws, or notes that it is reset
  /// to its default.
  virtual void drop(const std::string& key,
                    const std::string& because,
                    const std::string& reason,
                    const std::string& hint) = 0;

  template <class T>
  void refuse_unused(const std::string& key,
                     T& value,
                     const T& default_value,
                     const std::string& because,
                     const std::string& reason,
                     const std::string& hint) {
    if (value == default_value) return;
    drop(key, because, reason, hint);
    value = default_value;
  }
};

/// What one token leaves behind for the backward pass, in numbers.
struct SavedActivations {
  int64_t values = 0;      ///< in the precision of the computation
  int64_t statistics = 0;  ///< in float32 at least: roots of mean squares, log-sum-exps

  SavedActivations& operator+=(const SavedActivations& other) {
    values += other.values;
    statistics += other.statistics;
    return *this;
  }
};

/// What a row of a batch keeps while text is generated, in numbers.
struct StateSize {
  int64_t per_token = 0;  ///< grows with the row: keys and values
  int64_t fixed = 0;      ///< does not: states of linear mixers, last inputs of convolutions

  StateSize& operator+=(const StateSize& other) {
    per_token += other.per_token;
    fixed += other.fixed;
    return *this;
  }
};

/// A key of Hugging Face's config.json that says what a key of the section `model` says.
struct HuggingFaceKey {
  const char* name;         ///< in config.json
  const char* key;          ///< in the section, dotted: "attention.num_heads"
  bool is_canon_s = false;  ///< LlamaCanon knows it, Llama does not
  /// Where they differ: forge's values with theirs as JSON. Another value of forge's has none.
  std::vector<std::pair<const char*, const char*>> values = {};
};
using HuggingFaceKeys = std::vector<HuggingFaceKey>;

/// N(0, 0.02), as most released code has it.
InitRule release_init_normal(MatrixRole role, int64_t inputs);

struct BlockKind {
  const char* name;             ///< in model.layers, and of its section; "mlp" for MLPs
  const char* canon_positions;  ///< letters of Canon layers that may stand in it

  /// Fills in what follows from other keys of the block's section, and checks it.
  void (*complete)(ModelConfig& model, ConfigChecks& checks);
  /// Adds the block's weights, its norm included, in the order of its modules.
  void (*add_parameters)(const ModelConfig& model, ParameterList& list);
  /// Operations for one token of a row of `seq_len` that are no products with weights, 2 per
  /// multiply-add, averaged over the row.
  double (*mixing_flops)(const ModelConfig& model, int64_t seq_len);
  /// With the fused operations of backends/libtorch: every input that the backward pass reads.
  SavedActivations (*saved_activations)(const ModelConfig& model);
  StateSize (*state)(const ModelConfig& model);
  /// Those of its section. What else the section says is written under a key of forge's own.
  const HuggingFaceKeys& (*huggingface_keys)();
  /// Whether it sees tokens of other documents in the row, whatever train.document_mask says.
  bool crosses_documents = false;
  /// Under model.init release: how the code that the mixer was released with draws a matrix.
  InitRule (*release_init)(MatrixRole role, int64_t inputs) = release_init_normal;
};

/// Whether a weight is the taps of a convolution, each of which a token uses once.
bool is_taps(const Parameter& parameter);

/// Whether the Canon layer at `position` is an operation of its own: the fused ones have no
/// activation.
bool is_unfused_canon(const ModelConfig& model, char position);

/// Inputs that the Canon layer at `position` of `channels` channels keeps of the tokens before.
int64_t canon_state(const ModelConfig& model, char position, int64_t channels);

}  // namespace forge::model
