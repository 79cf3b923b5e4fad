#pragma once

#include "core/config/fields.h"
#include "core/lingua/recipe.h"

/// The keys of lingua's YAML, once: those that forge reads, in the form that core/config/reader.h
/// asks for. Keys without a counterpart are listed in core/lingua/no_counterpart.h.
namespace forge::lingua {

template <class Visitor>
void fields(Visitor& visit, Optim& c) {
  using config::above, config::at_least, config::between;
  visit.field("lr", c.lr, "", at_least(0));
  visit.field("weight_decay", c.weight_decay, "", at_least(0));
  visit.field("epsilon", c.epsilon, "", above(0));
  visit.field("beta1", c.beta1, "", between(0, 1));
  visit.field("beta2", c.beta2, "", between(0, 1));
  visit.field("clip", c.clip, "", at_least(0));
  visit.field("scheduler", c.scheduler, "");
  visit.field("warmup", c.warmup, "", at_least(0));
  visit.field("lr_min_ratio", c.lr_min_ratio, "", between(0, 1));
  visit.field("cycle_length", c.cycle_length, "", above(0));
  visit.field("cosine_theta", c.cosine_theta, "", above(0));
  visit.field("decay_fraction", c.decay_fraction, "", between(0, 1));
  visit.field("exp_factor", c.exp_factor, "", above(0));
}

template <class Visitor>
void fields(Visitor& visit, Model& c) {
  using config::above, config::up_to;
  visit.field("dim", c.dim, "", up_to(1 << 18));
  visit.field("n_layers", c.n_layers, "", up_to(1 << 12));
  visit.field("head_dim", c.head_dim, "", up_to(1 << 14));
  visit.field("n_heads", c.n_heads, "", up_to(1 << 12));
  visit.field("n_kv_heads", c.n_kv_heads, "", up_to(1 << 12));
  visit.field("hidden_dim", c.hidden_dim, "", up_to(1 << 20));
  visit.field("ffn_dim_multiplier", c.ffn_dim_multiplier, "", above(0));
  visit.field("multiple_of", c.multiple_of, "", up_to(1 << 20));
  visit.field("norm_eps", c.norm_eps, "", above(0));
  visit.field("rope_theta", c.rope_theta, "", above(0));
  visit.field("rope_dim", c.rope_dim, "");
  visit.field("init_base_std", c.init_base_std, "", above(0));
  visit.field("init_std_factor", c.init_std_factor, "");
  visit.field("qk_norm", c.qk_norm, "");
  visit.field("z_loss", c.z_loss, "");
  visit.field("canon_set", c.canon_set, "");
  visit.field("canon_bias", c.canon_bias, "");
  visit.field("canon_activation", c.canon_activation, "");
  visit.field("canon_kernel", c.canon_kernel, "");
  visit.field("canon_residual", c.canon_residual, "");
  visit.field("vocab_size", c.vocab_size, "", config::between(-1, 1 << 24));
  visit.field("weight_tying", c.weight_tying, "");
  visit.field("attn_impl", c.attn_impl, "");
  visit.field("sliding_window", c.sliding_window, "");
  visit.field("seed", c.seed, "");
}

template <class Visitor>
void fields(Visitor& visit, Tokenizer& c) {
  visit.field("name", c.name, "");
  visit.field("path", c.path, "");
}

template <class Visitor>
void fields(Visitor& visit, Data& c) {
  visit.field("root_dir", c.root_dir, "");
  visit.field("sources", c.sources, "", config::at_least(0));
  visit.field("batch_size", c.batch_size, "", config::up_to(1 << 20));
  visit.field("seq_len", c.seq_len, "", config::up_to(1 << 24));
  visit.field("n_views", c.n_views, "");
  visit.field("seed", c.seed, "");
  visit.field("add_bos", c.add_bos, "");
  visit.field("add_eos", c.add_eos, "");
  visit.section("tokenizer", c.tokenizer, "");
}

template <class Visitor>
void fields(Visitor& visit, Distributed& c) {
  visit.field("dp_shard", c.dp_shard, "", config::up_to(1 << 20));
  visit.field("dp_replicate", c.dp_replicate, "", config::up_to(1 << 20));
  visit.field("tp_size", c.tp_size, "", config::up_to(1 << 20));
  visit.field("model_dtype", c.model_dtype, "");
}

template <class Visitor>
void fields(Visitor& visit, SaveEvery& c) {
  visit.field("every", c.every, "", config::at_least(0));
}

template <class Visitor>
void fields(Visitor& visit, Checkpoint& c) {
  visit.section("dump", c.dump, "");
  visit.section("eval", c.eval, "");
}

template <class Visitor>
void fields(Visitor& visit, Logging& c) {
  visit.field("freq", c.freq, "", config::at_least(1));
}

template <class Visitor>
void fields(Visitor& visit, Recipe& c) {
  visit.field("name", c.name, "");
  visit.field("seed", c.seed, "");
  visit.field("steps", c.steps, "", config::at_least(1));
  visit.field("grad_acc_steps", c.grad_acc_steps, "", config::up_to(1 << 20));
  visit.section("data", c.data, "");
  visit.section("optim", c.optim, "");
  visit.section("model", c.model, "");
  visit.section("distributed", c.distributed, "");
  visit.section("checkpoint", c.checkpoint, "");
  visit.section("logging", c.logging, "");
}

}  // namespace forge::lingua
