#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace forge::model {

struct ModelConfig;

/// How a parameter is drawn at the start.
struct InitRule {
  enum class Kind {
    constant,
    normal,
    truncated_normal,
    uniform,
    log_uniform,       ///< the logarithm of a number uniform between low and high
    inverse_softplus,  ///< y with softplus(y) = e^u, u uniform between log low and log high
    module             ///< by the constructor of a block of one's own, in Python
  } kind = Kind::constant;
  double value = 1;          ///< constant
  double std = 0;            ///< normal, truncated_normal: of the normal before it is cut
  double cut = 0;            ///< truncated_normal: absolute bound
  double bound = 0;          ///< uniform: between -bound and bound
  double low = 0, high = 0;  ///< log_uniform, inverse_softplus; neither is ever drawn

  static InitRule constant(double value);
  static InitRule normal(double std);
  static InitRule truncated_normal(double std, double cut);
  static InitRule uniform(double bound);
  static InitRule log_uniform(double low, double high);
  static InitRule inverse_softplus(double low, double high);
  static InitRule module();
};

/// One weight of a model under its Hugging Face name, e.g.
/// "model.layers.0.self_attn.q_proj.weight".
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;  ///< linear: [out, in]; Canon: [channels, 1, kernel]
  InitRule init;
  std::string part = "";   ///< what it is for: embedding, attention, canon_a, mlp, norm, …
  bool is_matrix = false;  ///< of a matrix product or an embedding; others stay in float32
  int64_t count() const;
};

/// What a matrix does, which decides its initial distribution.
enum class MatrixRole {
  embedding,
  projection,    ///< into a block
  gate,          ///< into a block, of the channels that gate others
  mixer_output,  ///< ends the residual branch of a mixer
  mlp_output,    ///< ends the residual branch of an MLP
  lm_head,
};

/// Collects the weights of one block after another. Throws Error beyond 2^48 weights.
class ParameterList {
 public:
  explicit ParameterList(const ModelConfig& model) : whole_(model), model_(&model) {}

  /// Names that follow begin with "model.layers.LAYER.", and what follows is as the layer's own
  /// settings have it; -1: with nothing, as the model has it.
  void begin_layer(int layer);

  void matrix(const std::string& module,
              int64_t outputs,
              int64_t inputs,
              MatrixRole role,
              const std::string& part);
  /// One of two matrices whose product replaces one of full rank: drawn so that the product's
  /// deviation is 0.02, as in the released linear models, whatever model.init is.
  void low_rank(const std::string& module,
                int64_t outputs,
                int64_t inputs,
                int64_t rank,
                const std::string& part);
  /// A weight that is no matrix, under its name within the layer: "gdn2.A_log".
  void weight(const std::string& name,
              std::vector<int64_t> shape,
              const InitRule& init,
              const std::string& part);
  /// A weight of a block of one's own under its name within the layer, drawn like the matrices of
  /// that role, or by a rule of its own.
  void own_weight(const std::string& name,
                  std::vector<int64_t> shape,
                  MatrixRole role,
                  const std::string& part);
  void own_weight(const std::string& name,
                  std::vector<int64_t> shape,
                  const InitRule& init,
                  const std::string& part);
  /// A norm as model.norm describes it.
  void norm(const std::string& module, int64_t width);
  /// RMSNorm of the outputs of a linear mixer.
  void output_norm(const std::string& module, int64_t width);
  /// A linear mixer's own short convolution, where model.canon.set has b.
  void short_conv(const std::string& module, int64_t channels, const InitRule& init, bool bias);
  /// RMSNorm of queries or keys.
  void qk_norm(const std::string& module, int64_t width);
  /// The Canon layer at `position`, where the model has one, and blocks of one's own there.
  void canon(char position, const std::string& module, int64_t channels);

  std::vector<Parameter> take() { return std::move(parameters_); }

 private:
  void add_canon(char position, const std::string& module, int64_t channels);
  /// The parameter's name is the one that it has within its layer.
  void add(Parameter parameter);

  const ModelConfig& whole_;
  const ModelConfig* model_;  ///< of the layer
  int layer_ = -1;
  std::string prefix_;
  std::vector<Parameter> parameters_;
  int64_t total_ = 0;
};

/// Every weight of the model, in the order of the modules. Tied embeddings have no lm_head.weight.
/// The initial distributions are those of model.init (docs/MATHEMATICS.md). Throws Error for a
/// model beyond 10,000 layers or 2^48 weights, before anything of that size is allocated.
std::vector<Parameter> parameters(const ModelConfig& model);

int64_t parameter_count(const ModelConfig& model);

/// Draws `count` of a parameter's initial values, row-major, from number `first` on, with the
/// counter-based generator: stream = its name, one 32-bit word a value; the same bits on every
/// machine. Throws Error for a weight that only its module can draw. About 20 ns a value on one
/// core; parts may be drawn in parallel.
void draw_initial(
    const Parameter& parameter, uint64_t seed, int64_t first, int64_t count, float* values);

/// All of them: `values` holds count() floats.
void draw_initial(const Parameter& parameter, uint64_t seed, float* values);

}  // namespace forge::model
