"""GLA5, GDN2 and Mamba2: mixers with a state of fixed size, a matrix for each head.

A row is computed in chunks: within a chunk as attention with decays, between chunks by the state.
That is exact, and less memory than token by token. Every exponent is a difference of sums of
logarithms of decays that is at most 0. docs/MATHEMATICS.md has the formulas.
"""
import torch
import torch.nn.functional as F
from torch import nn

from parts import RMSNorm, causal_taps, linear, maybe_canon, wide

CHUNK = 64
CHANNEL_CHUNK = 16  # where each channel has a decay of its own: pairs of tokens times channels


def chunks(length, size):
    return [slice(first, min(first + size, length)) for first in range(0, length, size)]


def sums_of(x):
    """Sums of the tokens up to each, [batch, heads, tokens] or with channels behind. On a GPU Torch's
    own are not the same bits each time, and it refuses them where they must be."""
    if not (x.is_cuda and torch.are_deterministic_algorithms_enabled()):
        return x.cumsum(2)
    ones = torch.ones(x.shape[2], x.shape[2], dtype=x.dtype, device=x.device).tril()
    return ones @ x if x.dim() == 4 else x @ ones.T


def later_or_same(length, like):
    """Pairs (i, j) of tokens with i >= j."""
    return torch.ones(length, length, dtype=torch.bool, device=like.device).tril()


def decay_between(sums, pairs):
    """exp(sums_i - sums_j) for the pairs (i, j), 0 elsewhere; sums are [..., tokens]."""
    return (sums[..., :, None] - sums[..., None, :]).masked_fill(~pairs, -torch.inf).exp()


def gla(q, k, v, log_decay, scale):
    """S_t = diag(exp(log_decay_t)) S_t-1 + k_t v_t^T, o_t = scale S_t^T q_t.
    q, k, log_decay are [batch, heads, tokens, keys]. Returns the outputs and the last state."""
    state = torch.zeros(*k.shape[:2], k.shape[3], v.shape[3]).to(v)
    outputs = []
    for part in chunks(q.shape[2], CHANNEL_CHUNK):
        Q, K, V = q[:, :, part], k[:, :, part], v[:, :, part]
        b = sums_of(log_decay[:, :, part])
        pairs = later_or_same(Q.shape[2], Q)[..., None]
        decay = (b[:, :, :, None] - b[:, :, None]).masked_fill(~pairs, -torch.inf).exp()
        scores = (Q[:, :, :, None] * K[:, :, None] * decay).sum(-1)
        outputs.append(scale * ((Q * b.exp()) @ state + scores @ V))
        last = b[:, :, -1:]
        state = last.exp().transpose(2, 3) * state + (K * (last - b).exp()).transpose(2, 3) @ V
    return torch.cat(outputs, 2), state


def gated_delta(q, k, v, beta, log_decay, scale):
    """S' = exp(log_decay_t) S_t-1, S_t = S' + beta_t k_t (v_t - S'^T k_t)^T, o_t = scale S_t^T q_t.
    beta and log_decay are [batch, heads, tokens]. Returns the outputs and the last state."""
    state = torch.zeros(*k.shape[:2], k.shape[3], v.shape[3]).to(v)
    outputs = []
    for part in chunks(q.shape[2], CHUNK):
        Q, K, V = q[:, :, part], k[:, :, part], v[:, :, part]
        weight, b = beta[:, :, part, None], sums_of(log_decay[:, :, part])
        decay = decay_between(b, later_or_same(b.shape[2], b))
        earlier = (weight * (K @ K.transpose(2, 3)) * decay).tril(-1)
        system = earlier + torch.eye(b.shape[2]).to(earlier)
        wanted = weight * (V - b.exp()[..., None] * (K @ state))
        writes = torch.linalg.solve_triangular(system, wanted, upper=False, unitriangular=True)
        scores = (Q @ K.transpose(2, 3)) * decay
        outputs.append(scale * (b.exp()[..., None] * (Q @ state) + scores @ writes))
        last = b[:, :, -1:]
        state = last.exp()[..., None] * state + (
            (last - b).exp()[..., None] * K).transpose(2, 3) @ writes
    return torch.cat(outputs, 2), state


def state_space(x, b_keys, c_keys, step, log_decay):
    """S_t = exp(log_decay_t) S_t-1 + step_t x_t B_t^T, y_t = S_t C_t. x is [batch, heads, tokens,
    channels], B and C are [batch, tokens, keys]. Returns the outputs and the last state."""
    state = torch.zeros(*x.shape[:2], x.shape[3], b_keys.shape[2]).to(x)
    outputs = []
    for part in chunks(x.shape[2], CHUNK):
        B, C = b_keys[:, None, part], c_keys[:, None, part]
        X, b = step[:, :, part, None] * x[:, :, part], sums_of(log_decay[:, :, part])
        scores = (C @ B.transpose(2, 3)) * decay_between(b, later_or_same(b.shape[2], b))
        outputs.append(scores @ X + b.exp()[..., None] * (C @ state.transpose(2, 3)))
        last = b[:, :, -1:]
        state = last.exp()[..., None] * state + (
            (last - b).exp()[..., None] * X).transpose(2, 3) @ B
    return torch.cat(outputs, 2), state


class ShortConv(nn.Module):
    """A mixer's own causal convolution: four taps, nothing added to it."""

    def __init__(self, channels, bias=False):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, 4))
        self.bias = nn.Parameter(torch.empty(channels)) if bias else None

    def forward(self, x):
        out = causal_taps(wide(x), self.weight)
        return (out if self.bias is None else out + self.bias).to(x.dtype)


def low_rank(inputs, rank, outputs):
    return nn.Sequential(linear(inputs, rank), linear(rank, outputs, bias=True))


def split_heads(x, heads):
    """[batch, tokens, heads * channels] as [batch, heads, tokens, channels]."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


class GatedHeads(nn.Module):
    """What GLA5 and GDN2 have in common: q, k and v, and the norm and gate of the outputs."""

    def __init__(self, model, kind, norm_name):
        super().__init__()
        settings, hidden = model[kind], model["hidden_size"]
        self.heads = settings["num_heads"]
        key, value = round(settings["expand_k"] * hidden), round(settings["expand_v"] * hidden)
        self.key = key
        self.q_proj, self.k_proj, self.v_proj = (linear(hidden, key), linear(hidden, key),
                                                 linear(hidden, value))
        self.has_conv = "b" in model["canon"]["set"]
        if self.has_conv:
            self.q_conv1d, self.k_conv1d, self.v_conv1d = (ShortConv(key), ShortConv(key),
                                                           ShortConv(value))
        wanted = settings["qkv_activation"]
        self.silu = wanted == "silu" or (wanted == "after_conv" and self.has_conv)
        rank = settings["output_gate_rank"]
        self.g_proj = low_rank(hidden, rank, value) if rank else linear(hidden, value)
        self.norm_name = norm_name
        self.add_module(norm_name, RMSNorm(value // self.heads, model["norm"]["eps"]))
        self.o_proj = linear(value, hidden)
        self.scale = (key // self.heads) ** -0.5

    def qkv(self, x):
        parts = [self.q_proj(x), self.k_proj(x), self.v_proj(x)]
        if self.has_conv:
            convs = (self.q_conv1d, self.k_conv1d, self.v_conv1d)
            parts = [conv(part) for conv, part in zip(convs, parts)]
        return [F.silu(part) for part in parts] if self.silu else parts

    def gated(self, outputs, x):
        """Of the heads' outputs [batch, heads, tokens, channels] and the mixer's input."""
        normed = getattr(self, self.norm_name)(outputs).transpose(1, 2).flatten(2)
        return self.o_proj((normed * F.silu(wide(self.g_proj(x)))).to(x.dtype))

    def forward(self, x):
        return self.mix(x)[0]


class GLA5(GatedHeads):
    def __init__(self, model):
        super().__init__(model, "gla5", "g_norm")
        self.gk_proj = low_rank(model["hidden_size"], model["gla5"]["gate_rank"], self.key)
        self.normalizer = model["gla5"]["gate_normalizer"]

    def mix(self, x):
        """The mixer's output, and the state behind the last token."""
        q, k, v = (split_heads(wide(part), self.heads) for part in self.qkv(x))
        log_decay = split_heads(F.logsigmoid(wide(self.gk_proj(x))) / self.normalizer, self.heads)
        outputs, state = gla(q, k, v, log_decay, self.scale)
        return self.gated(outputs, x), state


class GDN2(GatedHeads):
    def __init__(self, model):
        super().__init__(model, "gdn2", "o_norm")
        hidden = model["hidden_size"]
        self.canonB = maybe_canon(model, "B", 2 * self.key + self.v_proj.out_features)
        self.b_proj, self.a_proj = linear(hidden, self.heads), linear(hidden, self.heads)
        self.A_log = nn.Parameter(torch.empty(self.heads))
        self.dt_bias = nn.Parameter(torch.empty(self.heads))

    def mix(self, x):
        """The mixer's output, and the state behind the last token."""
        parts = self.qkv(x)
        if self.canonB:
            parts = self.canonB(torch.cat(parts, -1)).split([part.shape[-1] for part in parts], -1)
        q, k, v = (split_heads(wide(part), self.heads) for part in parts)
        q, k = (one * torch.rsqrt((one * one).sum(-1, keepdim=True) + 1e-6) for one in (q, k))
        beta = wide(self.b_proj(x)).sigmoid().transpose(1, 2)
        fading = F.softplus(wide(self.a_proj(x)) + self.dt_bias)
        log_decay = (-self.A_log.exp() * fading).transpose(1, 2)
        outputs, state = gated_delta(q, k, v, beta, log_decay, self.scale)
        return self.gated(outputs, x), state


class Mamba2(nn.Module):
    def __init__(self, model):
        super().__init__()
        settings, hidden = model["mamba2"], model["hidden_size"]
        self.heads, self.keys = settings["num_heads"], settings["state_size"]
        self.inner = settings["expand"] * hidden
        width = 2 * self.inner + 2 * self.keys + self.heads
        self.in_proj = linear(hidden, width)
        has_conv = "b" in model["canon"]["set"]
        self.conv1d = ShortConv(self.inner + 2 * self.keys, bias=True) if has_conv else None
        self.silu = has_conv and settings["conv_activation"] == "silu"
        self.canonB = maybe_canon(model, "B", width)
        self.A_log = nn.Parameter(torch.empty(self.heads))
        self.dt_bias = nn.Parameter(torch.empty(self.heads))
        self.D = nn.Parameter(torch.empty(self.heads))
        self.norm = RMSNorm(self.inner, model["norm"]["eps"])
        self.out_proj = linear(self.inner, hidden)

    def mix(self, x):
        """The mixer's output, and the state behind the last token."""
        projected = self.in_proj(x)
        if self.canonB:
            projected = self.canonB(projected)
        z, mixed, step = projected.split((self.inner, self.inner + 2 * self.keys, self.heads), -1)
        if self.conv1d:
            mixed = self.conv1d(mixed)
        if self.silu:
            mixed = F.silu(mixed)
        values, B, C = wide(mixed).split((self.inner, self.keys, self.keys), -1)
        values = split_heads(values, self.heads)
        step = F.softplus(wide(step) + self.dt_bias).transpose(1, 2)
        log_decay = step * -self.A_log.exp()[:, None]
        outputs, state = state_space(values, B, C, step, log_decay)
        outputs = (outputs + self.D[:, None, None] * values).transpose(1, 2).flatten(2)
        return self.out_proj(self.norm(outputs * F.silu(wide(z))).to(x.dtype)), state

    def forward(self, x):
        return self.mix(x)[0]
