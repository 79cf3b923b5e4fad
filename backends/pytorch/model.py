"""A language model of residual blocks in plain PyTorch. Weights are named as Hugging Face does.

A new kind of mixer is a class and a line in MIXERS; own_blocks.py makes those of the user.
"""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from linear_mixers import GDN2, GLA5, Mamba2
import own_blocks
from parts import (RMSNorm, causal_attention, joined, linear, maybe_canon, norm, rotary_table, rotate,
                   wide)


class Attention(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden, head = model["hidden_size"], model["attention"]["head_dim"]
        self.heads, self.kv_heads = model["attention"]["num_heads"], model["attention"]["num_kv_heads"]
        self.head_dim = head
        query, key = self.heads * head, self.kv_heads * head
        self.q_proj, self.k_proj, self.v_proj = (linear(hidden, query), linear(hidden, key),
                                                 linear(hidden, key))
        self.o_proj = linear(query, hidden)
        self.qk_norm = model["attention"]["qk_norm"]
        full = self.qk_norm == "full"
        if self.qk_norm != "none":
            self.q_norm = RMSNorm(query if full else head, model["norm"]["eps"])
            self.k_norm = RMSNorm(key if full else head, model["norm"]["eps"])
        self.widths = (query, key, key)
        self.canonB = maybe_canon(model, "B", query + 2 * key)
        self.position = model["attention"]["position"]
        self.window = model["attention"].get("window")
        self.table = None  # of rotary angles, see prepare

    def prepare(self, length, like):
        """Makes the rotary table of rows of that length: compiled code must not make it at each step."""
        if self.position["kind"] == "rope":
            self.table = rotary_table(length, self.head_dim, self.position, like)

    def table_for(self, length, x):
        table = self.table
        if table is None or table[0].shape[0] < length or table[0].dtype != wide(x).dtype:
            return rotary_table(length, self.head_dim, self.position, x)
        return table[0][:length], table[1][:length]

    def qkv(self, x):
        """Queries, keys and values of all heads side by side, each [batch, length, heads * head_dim]."""
        together = joined(x, self.q_proj, self.k_proj, self.v_proj)
        if self.qk_norm == "full":
            q, k, v = together.split(self.widths, -1)
            together = torch.cat((self.q_norm(q), self.k_norm(k), v), -1)
        if self.canonB:
            together = self.canonB(together)
        return together.split(self.widths, -1)

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.qkv(x)
        q = q.reshape(batch, length, self.heads, self.head_dim)
        k = k.reshape(batch, length, self.kv_heads, self.head_dim)
        v = v.reshape(batch, length, self.kv_heads, self.head_dim)
        if self.qk_norm == "per_head":
            q, k = self.q_norm(q), self.k_norm(k)
        if self.position["kind"] == "rope":
            table = self.table_for(length, x)
            interleaved = self.position["pairing"] == "lingua"
            q, k = rotate(q, table, interleaved), rotate(k, table, interleaved)
        group = self.heads // self.kv_heads
        if group > 1:
            k, v = (part[:, :, :, None].expand(-1, -1, -1, group, -1).flatten(2, 3) for part in (k, v))
        mixed = causal_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2),
                                 self.window)
        return self.o_proj(mixed.transpose(1, 2).reshape(batch, length, -1))


GATES = {"swiglu": F.silu, "geglu": F.gelu}
ACTIVATIONS = {"gelu": F.gelu, "relu_squared": lambda x: F.relu(x) ** 2}  # of MLPs without a gate


class MLP(nn.Module):
    def __init__(self, model):
        super().__init__()
        hidden, width = model["hidden_size"], model["mlp"]["intermediate_size"]
        self.kind = model["mlp"]["kind"]
        if self.kind in GATES:
            self.gate_proj = linear(hidden, width)
        self.up_proj = linear(hidden, width)
        self.down_proj = linear(width, hidden)
        self.canonD = maybe_canon(model, "D", (2 if self.kind in GATES else 1) * width)

    def forward(self, x):
        parts = (joined(x, self.gate_proj, self.up_proj) if self.kind in GATES else
                 self.up_proj(x))
        if self.canonD:
            parts = self.canonD(parts)
        if self.kind in ACTIVATIONS:
            return self.down_proj(ACTIVATIONS[self.kind](parts))
        gate, up = parts.chunk(2, -1)
        return self.down_proj(GATES[self.kind](gate) * up)


class Block(nn.Module):
    """x + inner(norm(x)), with what stands between: a Canon layer, blocks of the user's own. `layer` is
    the number of the layer; `seed` that of what the user's constructors draw."""

    NORMS = {"A": "input_layernorm", "C": "post_attention_layernorm"}

    def __init__(self, model, position, inner_name, inner, layer, seed):
        super().__init__()
        self.norm_name, self.inner_name, self.layer = self.NORMS[position], inner_name, layer
        self.add_module(self.norm_name, norm(model))
        canon = maybe_canon(model, position, model["hidden_size"])
        self.between = ["canon" + position] if canon else []
        if canon:
            self.add_module("canon" + position, canon)
        self.own = ()  # names of the user's among them
        for name in sorted(model.get("blocks", {})):
            if position in model["blocks"][name]["at"]:
                self.add_own(name, model, own_blocks.build(name, model, layer, seed, position), position)
        if inner is None:
            inner = own_blocks.build(inner_name, model, layer, seed)
            self.inner_name = own_blocks.module_name(inner_name, inner)
            self.own += (self.inner_name,)
        own_blocks.require_free_name(self.inner_name, self)
        self.add_module(self.inner_name, inner)

    def add_own(self, name, model, built, position):
        module = own_blocks.module_name(name, built) + position
        own_blocks.require_free_name(module, self)
        self.add_module(module, built)
        self.between.append(module)
        self.own += (module,)

    def forward(self, x, ids):
        inside = getattr(self, self.norm_name)(x)
        for name in (*self.between, self.inner_name):
            module = getattr(self, name)
            inside = (own_blocks.call(module, inside, self.layer, ids) if name in self.own else
                      module(inside))
        return x + inside


MIXERS = {"attention": ("self_attn", Attention), "gla5": ("gla5", GLA5), "gdn2": ("gdn2", GDN2),
          "mamba2": ("mamba2", Mamba2)}


def mixer_and_model(model, layer):
    """The mixer that model.layers names, repeated; and the model that the layer is made by: what an
    element of model.layers says besides its mixer is laid upon it."""
    element = model["layers"][layer % len(model["layers"])]
    if isinstance(element, str):
        return element, model
    return element["mixer"], laid_upon(model, element)


def laid_upon(section, changes):
    laid = dict(section)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(section.get(key), dict)
        laid[key] = laid_upon(section[key], value) if both else value
    return laid


class Recomputed:
    """How training computes parts of a layer again in the backward pass in place of keeping what it needs
    of them: `kind` is train.recompute, `draws` whether blocks draw random numbers, which must be the same
    ones then. Of such a part its input is kept alone."""

    def __init__(self, kind="none", draws=False):
        self.kind, self.draws = kind, draws

    def run(self, kind, part, x, ids):
        if kind != self.kind or not torch.is_grad_enabled():
            return part(x, ids)
        return checkpoint(part, x, ids, use_reentrant=False, preserve_rng_state=self.draws)


NOTHING_RECOMPUTED = Recomputed()


class Layer(nn.Module):
    """Residual blocks one after another. Their modules are the layer's own, which gives weights
    the names of Hugging Face: layers.0.mlp.up_proj and not layers.0.blocks.1.mlp.up_proj."""

    def __init__(self, model, layer, seed):
        super().__init__()
        mixer, own = mixer_and_model(model, layer)
        names = own.get("blocks", {})
        name, kind = (mixer, None) if mixer in names else MIXERS[mixer]
        first = Block(own, "A", name, kind and kind(own), layer, seed)
        mlp = own["mlp"]["kind"]
        name, inner = (mlp, None) if mlp in names else ("mlp", MLP(own))
        self.blocks = (first, Block(own, "C", name, inner, layer, seed))
        for block in self.blocks:
            for name, module in block.named_children():
                own_blocks.require_free_name(name, self)
                self.add_module(name, module)

    def forward(self, x, ids, recomputed=NOTHING_RECOMPUTED):
        def both(x, ids):
            return recomputed.run("mlp", mlp, mixer(x, ids), ids)
        mixer, mlp = self.blocks
        return recomputed.run("blocks", both, x, ids)


class Body(nn.Module):
    def __init__(self, model, seed):
        super().__init__()
        self.embed_tokens = nn.Embedding(model["vocab_size"], model["hidden_size"])
        self.layers = nn.ModuleList(Layer(model, layer, seed)
                                    for layer in range(model["num_layers"]))
        self.norm = norm(model)

    def forward(self, ids, dtype, recomputed):
        x = self.embed_tokens(ids).to(dtype)
        for layer in self.layers:
            x = layer(x, ids, recomputed)
        return self.norm(x)


class Model(nn.Module):
    """`seed` is that of the weights which constructors of the user's own blocks draw. The model computes
    in `dtype`, whatever its weights are kept in; None: in that of its weights. `recompute` is
    train.recompute."""

    def __init__(self, model, seed=0, dtype=None, recompute="none"):
        super().__init__()
        self.model = Body(model, seed)
        if not model["tie_embeddings"]:
            self.lm_head = linear(model["hidden_size"], model["vocab_size"])
        self.tied = model["tie_embeddings"]
        self.dtype = dtype
        self.recomputed = Recomputed(recompute, own_blocks.has_own_blocks(model))

    def prepare(self, length):
        """Makes what all steps need and no step changes. The model is on its device."""
        like = torch.empty(0, dtype=self.computed_in(), device=self.model.embed_tokens.weight.device)
        for module in self.modules():
            if isinstance(module, Attention):
                module.prepare(length, like)

    def computed_in(self):
        return self.dtype or self.model.embed_tokens.weight.dtype

    def forward(self, ids):
        head = self.model.embed_tokens.weight if self.tied else self.lm_head.weight
        x = self.model(ids, self.computed_in(), self.recomputed)
        return F.linear(x, head.to(x.dtype))


def loss_of(logits, targets, z_loss, scored):
    """The rows' part of a step's mean loss, the penalty on the logits' scale included. `scored` is the
    number of the step's targets that count: see scored_of."""
    logits, targets = wide(logits).flatten(0, 1), targets.flatten()
    if z_loss["kind"] == "none":
        return F.cross_entropy(logits, targets, reduction="sum") / scored
    nll = F.cross_entropy(logits, targets, reduction="none")
    scale = logits.logsumexp(1) if z_loss["kind"] == "palm" else nll
    penalised = nll + z_loss["coefficient"] * scale ** 2
    return torch.where(targets != -100, penalised, torch.zeros_like(penalised)).sum() / scored


def scored_of(targets, z_loss):
    """What the losses of a step's targets are divided by, as a tensor: lingua's code divides by all."""
    if z_loss["kind"] == "lingua_code":
        return torch.full((), targets.numel(), device=targets.device)
    return (targets != -100).sum().clamp_min(1)
