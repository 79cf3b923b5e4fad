#pragma once

#include <string>
#include <vector>

#include "core/base/schema.h"
#include "core/config/experiment.h"

/// The schema: every key of an experiment with its field, meaning and limits. core/base/schema.h
/// says what a visitor is; the section `model` is in core/model/config.h,
/// `optimizer` in core/config/optimizer.h.
namespace forge::config {

using schema::above;
using schema::at_least;
using schema::between;
using schema::if_set;
using schema::Limits;
using schema::name_of;
using schema::or_null;
using schema::required;
using schema::up_to;

/// Spelling of each value of an enumeration, in the order of its declaration.
inline schema::Names names_of(ZLossKind) { return {"none", "palm", "lingua_code"}; }
inline schema::Names names_of(RowOrder) { return {"sequential", "shuffled"}; }
inline schema::Names names_of(DocumentKind) {
  return {"file", "line", "block", "separator", "record"};
}
inline schema::Names names_of(RowKind) { return {"packed", "padded"}; }
inline schema::Names names_of(TaskVariant) { return {"paper", "code"}; }

template <class Visitor>
void fields(Visitor& visit, TaskConfig& c) {
  visit.field("name", c.name, "depo1, depo2, brevo1, brevo2, mano, lano, capo or copy");
  visit.field("variant", c.variant, "what to follow where the paper and its code differ");
  visit.field("max_nodes", c.max_nodes, "depo, brevo: most names or vertices", between(0, 1 << 16));
  visit.field("max_hops", c.max_hops, "depo: most steps that are asked for", between(0, 1 << 16));
  visit.field("max_operators", c.max_operators, "mano: most operators", between(0, 1 << 12));
  visit.field("length", c.length, "copy: tokens of the permutation", between(0, 1 << 16));
  visit.field("scored_tokens",
              c.scored_tokens,
              "copy: copied tokens that carry loss, the first ones; 0: all",
              between(0, 1 << 16));
  visit.field("grammar", c.grammar, "lano: a JSON file of a grammar; empty: one is drawn");
  visit.field("grammar_seed", c.grammar_seed, "lano: of the grammar that is drawn");
  visit.field("people", c.people, "capo: people whose lives are told", between(0, 1 << 26));
}

/// Where text is, and what its documents are.
template <class Visitor>
void text_fields(Visitor& visit, TextConfig& c) {
  visit.field("path", c.path, "a file, or a folder of .txt or .jsonl files; each also .gz, .zst");
  visit.field("documents",
              c.documents,
              "text: what a document is; block: lines up to a blank one; jsonl: a record");
  visit.field("separator", c.separator, "documents separator: what stands between two of them");
  visit.field("field", c.field, "jsonl: field of a record that holds the text");
}

/// What of a text is for training and what for evaluation.
template <class Visitor>
void division_fields(Visitor& visit, TextConfig& c) {
  visit.field("training_fraction",
              c.training_fraction,
              "first part of the training documents, the only one to be used",
              between(1e-9, 1));
  visit.field("evaluation_path", c.evaluation_path, "files for evaluation; empty: part of path");
  visit.field("held_out_fraction",
              c.held_out_fraction,
              "last part of the bytes (of the documents where files are none), for evaluation",
              between(0.0001, 0.5));
}

template <class Visitor>
void fields(Visitor& visit, SourceConfig& c) {
  visit.field("weight", c.weight, "share of the training rows; 0: left out", between(0, 1e9));
  visit.field("source", c.source, "text or jsonl (files of your own), or toy_stories (generated)");
  text_fields(visit, c);
  division_fields(visit, c);
}

template <class Visitor>
void fields(Visitor& visit, DataConfig& c) {
  visit.field(
      "source",
      c.source,
      "toy_stories (generated), text or jsonl (files of your own), mixture (of sources) or task");
  text_fields(visit, c);
  visit.field("seed", c.seed, "of the generated text");
  visit.field("order_seed", c.order_seed, "of the order of the training rows; null: seed");
  visit.field("rows",
              c.rows,
              "packed: windows of all documents in turn; padded: one document, cut to seq_len");
  visit.field("order", c.order, "order of the training rows");
  division_fields(visit, c);
  visit.sections("sources", c.sources, "several texts, by names of your choice");
  visit.section("task", c.task, "synthetic pretraining task, where source is task");
}

template <class Visitor>
void fields(Visitor& visit, TokenizerConfig& c) {
  visit.field("kind",
              c.kind,
              "byte_level_bpe, trained or read; sentencepiece or tiktoken, read; none: of a task");
  visit.field(
      "vocab_size", c.vocab_size, "entries, special tokens included", between(261, 1 << 24));
  visit.field(
      "path", c.path, "tokenizer.json, .model or rank file to use; empty: trained on the data");
}

template <class Visitor>
void fields(Visitor& visit, ZLossConfig& c) {
  visit.field("kind", c.kind, "palm: coefficient * logsumexp^2; lingua_code: coefficient * nll^2");
  visit.field("coefficient", c.coefficient, "weight of the penalty", at_least(0));
}

template <class Visitor>
void fields(Visitor& visit, TrainConfig& c) {
  visit.field("batch_size", c.batch_size, "rows of a step", up_to(1 << 20));
  visit.field("micro_batch_size",
              c.micro_batch_size,
              "rows computed at once, their gradients added up; 0: all of a step",
              between(0, 1 << 20));
  visit.field("gradient_slots",
              c.gradient_slots,
              "equal parts of a step's rows, gradients added as a binary tree; a power of two",
              if_set(up_to(1 << 20)));
  visit.field("recompute",
              c.recompute,
              "computed again in the backward pass to save memory, to the same bits",
              if_set());
  visit.field("seq_len", c.seq_len, "tokens of a row", up_to(1 << 24));
  visit.field("max_steps", c.max_steps, "optimizer steps; 0: from max_tokens", at_least(0));
  visit.field("max_tokens", c.max_tokens, "tokens to train on; 0: from max_steps", at_least(0));
  visit.field("precision",
              c.precision,
              "of weights and computation; bfloat16: of the computation, weights are float32");
  visit.field("bfloat16_weights",
              c.bfloat16_weights,
              "precision bfloat16: weights are bfloat16 too, with or without float32 copies");
  visit.field(
      "grad_clip", c.grad_clip, "largest global gradient norm; 0: no clipping", at_least(0));
  visit.field("deterministic",
              c.deterministic,
              "same bits for the same run on the same machine; null: on a CPU, not on a GPU");
  visit.field("log_every", c.log_every, "steps between training metrics", at_least(1));
  visit.field(
      "eval_every", c.eval_every, "steps between evaluations; 0: only at the end", at_least(0));
  visit.field("checkpoint_every",
              c.checkpoint_every,
              "steps between checkpoints; 0: at the end and when stopped",
              at_least(0));
  visit.field("keep_checkpoints", c.keep_checkpoints, "newest checkpoints kept", up_to(1 << 20));
  visit.field(
      "keep_best",
      c.keep_best,
      "keep the checkpoint with the lowest evaluation loss, too, of those at an evaluation");
  visit.field("max_bad_steps",
              c.max_bad_steps,
              "steps in a row with an infinite, nan or exploding loss that end the training",
              at_least(1));
  visit.field("hung_after_seconds",
              c.hung_after_seconds,
              "seconds without a sign of work after which a worker is killed",
              at_least(1));
  visit.field("eval_rows",
              c.eval_rows,
              "held-out rows of the test set: eval_loss and scores are of these",
              at_least(1));
  visit.field(
      "validation_rows",
      c.validation_rows,
      "held-out rows of the validation set, behind the test set: validation_loss chooses runs",
      between(0, 1 << 20));
  visit.field("eval_batch_size", c.eval_batch_size, "rows evaluated at once", up_to(1 << 20));
  visit.field("eval_prompts",
              c.eval_prompts,
              "texts that the model goes on with, of tasks that are measured so",
              up_to(1 << 20));
  visit.field("document_mask", c.document_mask, "attention and convolution stay within a document");
  visit.field("initial_weights",
              c.initial_weights,
              "a run or a folder of Hugging Face's to begin from; empty: model.init");
  visit.field(
      "initial_weights_seed", c.initial_weights_seed, "of the initial weights alone; null: seed");
  visit.section("z_loss", c.z_loss, "penalty on the logits' scale");
}

template <class Visitor>
void fields(Visitor& visit, ParallelConfig& c) {
  visit.field(
      "processes",
      c.processes,
      "that train the run together, a power of two that divides train.gradient_slots; auto: "
      "as many as there are GPUs",
      up_to(1 << 20));
  visit.field("timeout_seconds",
              c.timeout_seconds,
              "seconds for which processes wait for each other to start",
              at_least(1));
}

template <class Visitor>
void fields(Visitor& visit, ScheduleConfig& c) {
  visit.field("type", c.type, "infinite_lr, cosine, linear, inv_sqrt, wsd or constant");
  visit.field("warmup_steps", c.warmup_steps, "steps of linear warm-up from 0", at_least(0));
  visit.field(
      "cooldown_steps", c.cooldown_steps, "infinite_lr: steps from lr to constant_lr", at_least(0));
  visit.field("constant_lr", c.constant_lr, "infinite_lr: rate after the cooldown", at_least(0));
  visit.field("min_lr", c.min_lr, "infinite_lr: rate that annealing approaches", at_least(0));
  visit.field("tau", c.tau, "infinite_lr: steps in which annealing falls by a factor e", above(0));
  visit.field("checkpoint_step",
              c.checkpoint_step,
              "infinite_lr: step at which annealing begins; -1: never",
              at_least(-1));
  visit.field("lr_min_ratio",
              c.lr_min_ratio,
              "cosine, linear, inv_sqrt, wsd: lowest learning rate over the peak",
              between(0, 1));
  visit.field(
      "cycle_length", c.cycle_length, "cosine, wsd: length of a cycle over the run", above(0));
  visit.field("cosine_theta", c.cosine_theta, "cosine: exponent of the progress", above(0));
  visit.field("decay_fraction",
              c.decay_fraction,
              "wsd: last part of a cycle, in which the rate falls",
              between(0, 1));
  visit.field("exp_factor", c.exp_factor, "inv_sqrt: the rate falls as step^-exp_factor", above(0));
}

template <class Visitor>
void fields(Visitor& visit, ExternalConfig& c) {
  visit.field("command", c.command, "program and arguments, a list; no shell is involved");
  visit.field("working_directory",
              c.working_directory,
              "where it is started; empty: the project's folder, or that of the declaration");
  visit.field("environment", c.environment, "NAME=VALUE, a list; added to forge's own");
}

template <class Visitor>
void fields(Visitor& visit, Experiment& c) {
  visit.field("name", c.name, "display name");
  visit.field("description", c.description, "one line for listings");
  visit.field("seed", c.seed, "of the initial weights and of the order of the training rows");
  visit.field("profile", c.profile, "named set of overrides; auto: full on a GPU, quick elsewhere");
  visit.field("backend", c.backend, "program that trains: libtorch, external or a declared one");
  visit.section("external", c.external, "the program of backend external");
  visit.section("model", c.model, "architecture");
  visit.section("data", c.data, "training and evaluation text");
  visit.section("tokenizer", c.tokenizer, "text to token ids");
  visit.section("train", c.train, "training loop");
  visit.section("parallel", c.parallel, "several processes that train one run", if_set());
  visit.section("optimizer", c.optimizer, "optimizer");
  visit.section("schedule", c.schedule, "learning rate over steps");
}

}  // namespace forge::config
