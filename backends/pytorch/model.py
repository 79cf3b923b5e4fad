"""A language model of residual blocks in plain PyTorch. Weights are named as Hugging Face does.

A new kind of mixer is a class and a line in BLOCKS; own_blocks.py takes those of the user.
"""
import torch
import torch.nn.functional as F
from torch import nn

from linear_mixers import GDN2, GLA5, Mamba2
import own_blocks
from parts import (RMSNorm, causal_attention, linear, maybe_canon, norm, rotary_table, rotate)


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
        self.canonB = maybe_canon(model, "B", query + 2 * key)
        self.position = model["attention"]["position"]
        self.window = model["attention"].get("window")

    def forward(self, x):
        batch, length, _ = x.shape
        q, k, v = self.q_proj(x), self.k_proj(x), self.v_proj(x)
        if self.qk_norm == "full":
            q, k = self.q_norm(q), self.k_norm(k)
        if self.canonB:
            q, k, v = self.canonB(torch.cat((q, k, v), -1)).split(
                (q.shape[-1], k.shape[-1], v.shape[-1]), -1)
        q = q.reshape(batch, length, self.heads, self.head_dim)
        k = k.reshape(batch, length, self.kv_heads, self.head_dim)
        v = v.reshape(batch, length, self.kv_heads, self.head_dim)
        if self.qk_norm == "per_head":
            q, k = self.q_norm(q), self.k_norm(k)
        if self.position["kind"] == "rope":
            table = rotary_table(length, self.head_dim, self.position, x)
            interleaved = self.position["pairing"] == "lingua"
            q, k = rotate(q, table, interleaved), rotate(k, table, interleaved)
        group = self.heads // self.kv_heads
        k, v = k.repeat_interleave(group, 2), v.repeat_interleave(group, 2)
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
        parts = self.up_proj(x)
        if self.kind in GATES:
            parts = torch.cat((self.gate_proj(x), parts), -1)
        if self.canonD:
            parts = self.canonD(parts)
        if self.kind in ACTIVATIONS:
            return self.down_proj(ACTIVATIONS[self.kind](parts))
        gate, up = parts.chunk(2, -1)
        return self.down_proj(GATES[self.kind](gate) * up)


class MixerBlock(nn.Module):
    """A mixer, under the name that its weights have."""

    def __init__(self, model, name, mixer):
        super().__init__()
        self.input_layernorm = norm(model)
        self.canonA = maybe_canon(model, "A", model["hidden_size"])
        self.name = name
        self.add_module(name, mixer(model))

    def forward(self, x):
        normed = self.input_layernorm(x)
        return x + getattr(self, self.name)(self.canonA(normed) if self.canonA else normed)


class OwnMixerBlock(nn.Module):
    """A mixer of the user's own. What it does not get from forge its constructor draws, by a seed of
    its layer."""

    def __init__(self, model, name, layer, seed):
        super().__init__()
        self.input_layernorm = norm(model)
        self.canonA = maybe_canon(model, "A", model["hidden_size"])
        mixer = own_blocks.build(name, model, layer, seed)
        self.name = own_blocks.module_name(name, mixer)
        self.add_module(self.name, mixer)
        self.layer = layer

    def forward(self, x, ids):
        normed = self.input_layernorm(x)
        mixer = getattr(self, self.name)
        context = own_blocks.Context(layer=self.layer, ids=ids)
        return x + mixer(self.canonA(normed) if self.canonA else normed, context)


class MLPBlock(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.post_attention_layernorm = norm(model)
        self.canonC = maybe_canon(model, "C", model["hidden_size"])
        self.mlp = MLP(model)

    def forward(self, x):
        normed = self.post_attention_layernorm(x)
        return x + self.mlp(self.canonC(normed) if self.canonC else normed)


BLOCKS = {
    "attention": lambda model: MixerBlock(model, "self_attn", Attention),
    "gla5": lambda model: MixerBlock(model, "gla5", GLA5),
    "gdn2": lambda model: MixerBlock(model, "gdn2", GDN2),
    "mamba2": lambda model: MixerBlock(model, "mamba2", Mamba2)}


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


class Layer(nn.Module):
    """Residual blocks one after another. Their modules are the layer's own, which gives weights
    the names of Hugging Face: layers.0.mlp.up_proj and not layers.0.blocks.1.mlp.up_proj."""

    def __init__(self, model, layer, seed):
        super().__init__()
        mixer, own = mixer_and_model(model, layer)
        self.is_own = mixer in model.get("blocks", {})
        if self.is_own:
            first = OwnMixerBlock(own, mixer, layer, seed)
        else:
            first = BLOCKS[mixer](own)
        self.blocks = (first, MLPBlock(own))
        for block in self.blocks:
            for name, module in block.named_children():
                self.add_module(name, module)

    def forward(self, x, ids):
        mixer, mlp = self.blocks
        return mlp(mixer(x, ids) if self.is_own else mixer(x))


class Body(nn.Module):
    def __init__(self, model, seed):
        super().__init__()
        self.embed_tokens = nn.Embedding(model["vocab_size"], model["hidden_size"])
        self.layers = nn.ModuleList(Layer(model, layer, seed)
                                    for layer in range(model["num_layers"]))
        self.norm = norm(model)

    def forward(self, ids):
        x = self.embed_tokens(ids)
        for layer in self.layers:
            x = layer(x, ids)
        return self.norm(x)


class Model(nn.Module):
    """`seed` is that of the weights which constructors of the user's own blocks draw."""

    def __init__(self, model, seed=0):
        super().__init__()
        self.model = Body(model, seed)
        if not model["tie_embeddings"]:
            self.lm_head = linear(model["hidden_size"], model["vocab_size"])
        self.tied = model["tie_embeddings"]

    def forward(self, ids):
        head = self.model.embed_tokens.weight if self.tied else self.lm_head.weight
        return F.linear(self.model(ids), head)


def loss_of(logits, targets, z_loss):
    """Mean over the scored targets, the penalty on the logits' scale included."""
    if z_loss["kind"] == "none":
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())
    logits, targets = logits.flatten(0, 1), targets.flatten()
    scored = targets != -100
    log_sum_exp = logits.logsumexp(1)
    nll = log_sum_exp - logits.gather(1, targets.clamp_min(0)[:, None])[:, 0]
    palm = z_loss["kind"] == "palm"
    penalised = nll + z_loss["coefficient"] * (log_sum_exp if palm else nll) ** 2
    total = torch.where(scored, penalised, torch.zeros_like(penalised)).sum()
    return total / (scored.sum() if palm else targets.numel())


def share_of(part, targets, z_loss):
    """What the mean loss of some rows weighs in that of the whole step."""
    if z_loss["kind"] == "lingua_code":
        return part.numel() / targets.numel()
    return (part != -100).sum().item() / max(1, (targets != -100).sum().item())
