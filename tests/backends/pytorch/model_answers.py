"""What the Python worker's model computes for models, weights and rows: JSON on stdin and stdout.

Loss: logits at t against ids at t + 1. `mixer_out` and `final_state` are of the first layer.
"""
import json
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../backends/pytorch"))
from model import Model  # noqa: E402

DTYPES = {"float32": torch.float32, "float64": torch.float64}


def first_mixer(model, ids):
    block = model.model.layers[0].blocks[0]
    normed = block.input_layernorm(model.model.embed_tokens(ids))
    return getattr(block, block.inner_name).mix(
        block.canonA(normed) if "canonA" in block.between else normed)


def answer(case):
    model = Model(case["model"]).to(DTYPES[case["precision"]])
    weights = case["weights"]
    with torch.no_grad():
        for name, weight in model.named_parameters():
            values = torch.tensor(weights.pop(name), dtype=torch.float64)
            weight.copy_(values.view(weight.shape))
    assert not weights, f"the model lacks {list(weights)}"
    ids = torch.tensor(case["input_ids"])
    logits = model(ids)
    loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), ids[:, 1:].flatten())
    loss.backward()
    mixed, state = first_mixer(model, ids)
    return {"loss": loss.item(), "logits": logits.flatten().tolist(),
            "mixer_out": mixed.flatten().tolist(), "final_state": state.flatten().tolist(),
            "gradients": {name: weight.grad.flatten().tolist()
                          for name, weight in model.named_parameters()}}


json.dump([answer(case) for case in json.load(sys.stdin)], sys.stdout)
