"""Attention whose output passes a gate: Qiu et al., "Gated Attention for Large Language Models:
Non-linearity, Sparsity, and Attention-Sink-Free", arXiv:2505.06708 (2025), the position G1, which they
found best: y = o_proj(attention(x) * sigmoid(gate_proj(x))), a number of the gate for each channel of
each head. With `gate: none` it is the attention of forge.
"""
import torch
from parts import causal_attention, linear, rotary_table, rotate
from torch import nn

GATES = ("elementwise", "none")


class GatedAttention(nn.Module):
    # The names of the weights, model.layers.0.self_attn.q_proj.weight, and so their initial values are
    # those of forge's attention: runs with one seed begin alike.
    module = "self_attn"
    # Drawn as model.init says for matrices of that role. A weight that is not listed keeps what this
    # constructor gives it, drawn by the run's seed.
    initial = {"q_proj.weight": "projection", "k_proj.weight": "projection",
               "v_proj.weight": "projection", "o_proj.weight": "mixer_output"}

    def __init__(self, section, model):
        super().__init__()
        hidden = model["hidden_size"]
        self.heads = section["num_heads"]
        self.theta = section.get("theta", 10000)
        gate = section.get("gate", "elementwise")
        if hidden % self.heads:
            raise ValueError(f"num_heads {self.heads} does not divide hidden_size {hidden}")
        if gate not in GATES:
            raise ValueError(f"gate '{gate}' is none of {', '.join(GATES)}")
        self.q_proj, self.k_proj = linear(hidden, hidden), linear(hidden, hidden)
        self.v_proj, self.o_proj = linear(hidden, hidden), linear(hidden, hidden)
        self.gate_proj = linear(hidden, hidden) if gate == "elementwise" else None
        if self.gate_proj is not None:
            self.initial = {**self.initial, "gate_proj.weight": "projection"}

    def forward(self, x, context):
        rows, length, hidden = x.shape
        width = hidden // self.heads
        q, k, v = (projection(x).view(rows, length, self.heads, width)
                   for projection in (self.q_proj, self.k_proj, self.v_proj))
        position = {"rope_dim": None, "theta": self.theta}
        table = rotary_table(length, width, position, x)
        q, k = rotate(q, table, False), rotate(k, table, False)
        mixed = causal_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2))
        mixed = mixed.transpose(1, 2).reshape(rows, length, hidden)
        if self.gate_proj is not None:
            mixed = mixed * torch.sigmoid(self.gate_proj(x))
        return self.o_proj(mixed)

    def flops(self, length):
        """Of a token, forward, 2 a multiply-add: forge counts attention as half of the square, too."""
        hidden = self.q_proj.weight.shape[0]
        matrices = 4 if self.gate_proj is None else 5
        return 2 * matrices * hidden * hidden + 2 * hidden * length
