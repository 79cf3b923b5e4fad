"""What blocks are made of: norms, short convolutions, projections."""
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
