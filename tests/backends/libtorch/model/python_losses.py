"""Losses and gradients of models by the Python worker's model, in float64: JSON on stdin and stdout."""
import json
import os
import sys

import torch
import torch.nn.functional as F

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../backends/pytorch"))
from model import Model  # noqa: E402
from numbers_by_counter import draw_initial  # noqa: E402


def answer(case):
    model = Model(case["model"]).double()
    drawn = {weight["name"]: draw_initial(weight, case["seed"]) for weight in case["weights"]}
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.from_numpy(drawn.pop(name)))
    assert not drawn, f"the model lacks {list(drawn)}"
    logits = model(torch.tensor(case["inputs"]))
    loss = F.cross_entropy(logits.flatten(0, 1), torch.tensor(case["targets"]).flatten())
    loss.backward()
    return {"loss": loss.item(), "gradients": {
        name: weight.grad.flatten().tolist() for name, weight in model.named_parameters()}}


json.dump([answer(case) for case in json.load(sys.stdin)], sys.stdout)
