"""What blocks are made of: norms, short convolutions, projections, rotations, attention. Blocks of
the user's own may import them: `from parts import RMSNorm, linear`."""
import math

import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        return self.weight * (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + self.eps))


def norm(model):
    """Of the residual stream, as model.norm describes it."""
    kinds = {"rms_norm": RMSNorm, "layer_norm": nn.LayerNorm}
    return kinds[model["norm"]["kind"]](model["hidden_size"], model["norm"]["eps"])


def causal_taps(x, weight):
    """Each channel's sum over the last tokens; the last tap multiplies the token itself."""
    taps = weight.shape[2]
    out = x * weight[:, 0, taps - 1]
    for back in range(1, min(taps, x.shape[1])):
        earlier = x[:, :-back] * weight[:, 0, taps - 1 - back]
        out = out + F.pad(earlier, (0, 0, back, 0))
    return out


class Canon(nn.Module):
    """A short causal convolution of each channel by itself."""

    def __init__(self, channels, canon):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, 1, canon["kernel"]))
        self.residual = canon["residual"]
        self.silu = canon["activation"] == "silu"

    def forward(self, x):
        out = causal_taps(x, self.weight)
        if self.silu:
            out = F.silu(out)
        return x + out if self.residual else out


def linear(inputs, outputs):
    return nn.Linear(inputs, outputs, bias=False)


def maybe_canon(model, position, channels):
    return Canon(channels, model["canon"]) if position in model["canon"]["set"] else None


def rotary_table(length, head_dim, position, like):
    """Cosines and sines [length, pairs], computed in double."""
    dim = position["rope_dim"] or head_dim
    frequency = torch.pow(torch.tensor(position["theta"], dtype=torch.float64),
                          torch.arange(dim // 2, dtype=torch.float64) * (-2.0 / dim))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    return angle.cos().to(like), angle.sin().to(like)


def rotate(x, table, interleaved):
    """x is [batch, length, heads, head_dim]; channels behind the rotated ones stay."""
    cos, sin = table[0][:, None], table[1][:, None]
    dim = 2 * cos.shape[-1]
    turning, rest = x[..., :dim], x[..., dim:]
    if interleaved:
        a, b = turning[..., 0::2], turning[..., 1::2]
    else:
        a, b = turning.chunk(2, -1)
    first, second = a * cos - b * sin, a * sin + b * cos
    turned = torch.stack((first, second), -1).flatten(-2) if interleaved else torch.cat(
        (first, second), -1)
    return torch.cat((turned, rest), -1)


def causal_attention(q, k, v, window=None):
    """Of [batch, heads, length, head_dim], with the products written out: torch 1.13 has no other.
    A token sees itself and the window - 1 tokens before it, or all before it."""
    length = q.shape[2]
    scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[3])
    place = torch.arange(length, device=q.device)
    back = place[:, None] - place  # of query and key
    hidden = (back < 0) | (back >= (window or length))
    return scores.masked_fill(hidden, -math.inf).softmax(-1) @ v
