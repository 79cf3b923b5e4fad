"""What blocks are made of: norms, short convolutions, projections, rotations, attention. Blocks of
the user's own may import them: `from parts import RMSNorm, linear`."""
import math

import torch
import torch.nn.functional as F
from torch import nn

# Torch's fused attention, from 2.0 on.
library_attention = getattr(F, "scaled_dot_product_attention", None)
leave_uncompiled = getattr(getattr(torch, "compiler", None), "disable", lambda function: function)


def wide(x):
    """In float32 where x is bfloat16: sums and exponentials are not computed in less."""
    return x.float() if x.dtype == torch.bfloat16 else x


class RMSNorm(nn.Module):
    def __init__(self, width, eps):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.eps = eps

    def forward(self, x):
        y = wide(x)
        normed = self.weight * (y * torch.rsqrt((y * y).mean(-1, keepdim=True) + self.eps))
        return normed.to(x.dtype)


class LayerNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(wide(x)).to(x.dtype)


def norm(model):
    """Of the residual stream, as model.norm describes it."""
    kinds = {"rms_norm": RMSNorm, "layer_norm": LayerNorm}
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
        y = wide(x)
        out = causal_taps(y, self.weight)
        if self.silu:
            out = F.silu(out)
        return (y + out if self.residual else out).to(x.dtype)


class Linear(nn.Linear):
    """Multiplies in the input's dtype: float32 weights are rounded where the input is bfloat16."""

    def forward(self, x):
        bias = None if self.bias is None else self.bias.to(x.dtype)
        return F.linear(x, self.weight.to(x.dtype), bias)


def linear(inputs, outputs, bias=False):
    return Linear(inputs, outputs, bias=bias)


def joined(x, *layers):
    """The outputs of several layers without bias side by side, by one product."""
    return F.linear(x, torch.cat([layer.weight.to(x.dtype) for layer in layers]))


def maybe_canon(model, position, channels):
    return Canon(channels, model["canon"]) if position in model["canon"]["set"] else None


tables_made = {}  # the rotary tables of a process: made anew they would be copied to a GPU at each step


@leave_uncompiled
def rotary_table(length, head_dim, position, like):
    """Cosines and sines [length, pairs], computed in double; float32 for an input of bfloat16."""
    dim = position["rope_dim"] or head_dim
    dtype = torch.float32 if like.dtype == torch.bfloat16 else like.dtype
    key = (length, dim, position["theta"], like.device, dtype)
    if key not in tables_made:
        tables_made[key] = computed_table(length, dim, position["theta"], like.device, dtype)
    return tables_made[key]


def computed_table(length, dim, theta, device, dtype):
    frequency = torch.pow(torch.tensor(theta, dtype=torch.float64),
                          torch.arange(dim // 2, dtype=torch.float64) * (-2.0 / dim))
    angle = torch.arange(length, dtype=torch.float64)[:, None] * frequency
    return angle.cos().to(device, dtype), angle.sin().to(device, dtype)


def rotate(x, table, interleaved):
    """x is [batch, length, heads, head_dim]; channels behind the rotated ones stay."""
    cos, sin = table[0][:, None], table[1][:, None]
    dim = 2 * cos.shape[-1]
    dtype, x = x.dtype, x.to(cos.dtype)
    turning, rest = x[..., :dim], x[..., dim:]
    if interleaved:
        a, b = turning[..., 0::2], turning[..., 1::2]
    else:
        a, b = turning.chunk(2, -1)
    first, second = a * cos - b * sin, a * sin + b * cos
    turned = torch.stack((first, second), -1).flatten(-2) if interleaved else torch.cat(
        (first, second), -1)
    return (torch.cat((turned, rest), -1) if rest.shape[-1] else turned).to(dtype)


def causal_attention(q, k, v, window=None):
    """Of [batch, heads, length, head_dim]. A token sees itself and the window - 1 tokens before it, or
    all before it. Before Torch 2.0 the products are written out."""
    length = q.shape[2]
    if library_attention and (window or length) >= length:
        return library_attention(q, k, v, is_causal=True)
    place = torch.arange(length, device=q.device)
    back = place[:, None] - place  # of query and key
    seen = (back >= 0) & (back < (window or length))
    if library_attention:
        return library_attention(q, k, v, attn_mask=seen)
    scores = wide(q @ k.transpose(2, 3)) / math.sqrt(q.shape[3])
    return scores.masked_fill(~seen, -math.inf).softmax(-1).to(v.dtype) @ v
