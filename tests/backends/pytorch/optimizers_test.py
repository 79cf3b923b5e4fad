"""The optimizers of the Python worker against the published algorithms' traces (optimizer_traces.py). Needs
torch."""
import json
import os
import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    sys.exit(77)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "../../../backends/pytorch"))

from optimizers import Optimizer, group_of, orthogonalised  # noqa: E402

with open(os.path.join(HERE, "../../vectors/optimizer_traces.json"), encoding="utf-8") as vectors:
    TRACES = json.load(vectors)


class Weights:
    """All that an optimizer sees of a model."""

    def __init__(self):
        self.own = {weight["name"]: torch.nn.Parameter(tensor_of(weight["data"], weight["shape"]))
                    for weight in TRACES["weights"]}

    def named_parameters(self):
        return self.own.items()


def tensor_of(integers, shape):
    return torch.tensor(integers, dtype=torch.float64).reshape(shape) / TRACES["scale"]


def run_step(model, optimizer, case, step):
    for name, weight in model.own.items():
        weight.grad = tensor_of(TRACES["gradients"][step][name], weight.shape)
    if case["grad_clip"]:
        torch.nn.utils.clip_grad_norm_(model.own.values(), case["grad_clip"])
    optimizer.set_learning_rate(case["optimizer"]["lr"] * min(1, step / TRACES["warmup_steps"]))
    optimizer.step()


class Traces(unittest.TestCase):
    def test_weights_follow_the_published_algorithms(self):
        self.assertEqual(len(TRACES["cases"]), 9)
        for case in TRACES["cases"]:
            with self.subTest(case["name"]):
                model = Weights()
                optimizer = Optimizer(case["optimizer"], model.own)
                for step in range(len(TRACES["gradients"])):
                    run_step(model, optimizer, case, step)
                for name, weight in model.own.items():
                    wanted = torch.tensor(case["final"][name], dtype=torch.float64).reshape(weight.shape)
                    self.assertLess((weight - wanted).abs().max().item(), 1e-12, name)

    def test_a_restored_state_goes_on_bit_for_bit(self):
        for case in TRACES["cases"]:
            with self.subTest(case["name"]):
                whole, parted = Weights(), Weights()
                whole_optimizer = Optimizer(case["optimizer"], whole.own)
                first = Optimizer(case["optimizer"], parted.own)
                for step in range(3):
                    run_step(whole, whole_optimizer, case, step)
                    run_step(parted, first, case, step)
                second = Optimizer(case["optimizer"], parted.own)
                second.restore(first.named_state(), 3)
                for step in range(3, 6):
                    run_step(whole, whole_optimizer, case, step)
                    run_step(parted, second, case, step)
                for name, weight in whole.own.items():
                    self.assertTrue(torch.equal(weight, parted.own[name]), name)
                states = [optimizer.named_state() for optimizer in (whole_optimizer, second)]
                self.assertEqual(list(states[0]), list(states[1]))
                for name, tensor in states[0].items():
                    self.assertTrue(torch.equal(tensor, states[1][name]), name)


class State(unittest.TestCase):
    def kept(self, **settings):
        case = {**TRACES["cases"][0], **settings}
        model = Weights()
        optimizer = Optimizer(case["optimizer"], model.own)
        run_step(model, optimizer, case, 0)
        return set(optimizer.named_state())

    def test_each_optimizer_keeps_its_moments(self):
        cases = {case["name"]: case["optimizer"] for case in TRACES["cases"]}
        names = {weight["name"]: weight["group"] for weight in TRACES["weights"]}
        both = {f"{name}.{moment}" for name in names for moment in ("first_moment", "second_moment")}
        one = {f"{name}.momentum" for name in names}
        self.assertEqual(self.kept(optimizer=cases["adamw"]), both)
        self.assertEqual(self.kept(optimizer=cases["lion"]), one)
        self.assertEqual(self.kept(optimizer=cases["sgd"]), one)
        self.assertEqual(self.kept(optimizer=cases["sgd_plain"]), set())
        is_matrix = {name for name, group in names.items() if group == "matrices"}
        self.assertEqual(self.kept(optimizer=cases["muon"]),
                         {kept for kept in both if kept.rpartition(".")[0] not in is_matrix} |
                         {f"{name}.momentum" for name in is_matrix})


class Groups(unittest.TestCase):
    def test_names_and_shapes_decide(self):
        for weight in TRACES["weights"]:
            self.assertEqual(group_of(weight["name"], weight["shape"]), weight["group"], weight["name"])
        for name, shape, group in [("model.layers.0.mamba2.conv1d.bias", [8], "canon"),
                                   ("model.layers.0.gla5.q_conv1d.weight", [8, 1, 4], "canon"),
                                   ("model.layers.0.gdn2.A_log", [2], "vectors"),
                                   ("model.layers.0.gla5.gk_proj.1.bias", [8], "vectors"),
                                   ("model.layers.0.mamba2.norm.weight", [8], "norms")]:
            self.assertEqual(group_of(name, shape), group, name)


class NewtonSchulz(unittest.TestCase):
    def test_singular_values_come_near_one(self):
        torch.manual_seed(3)
        muon = {"newton_schulz_steps": 5, "newton_schulz_coefficients": [3.4445, -4.775, 2.0315]}
        for shape in ((16, 16), (8, 40), (40, 8)):
            matrix = torch.randn(shape, dtype=torch.float64)
            values = torch.linalg.svdvals(orthogonalised(matrix, muon))
            self.assertGreater(values.min().item(), 0.3 if shape == (16, 16) else 0.6)
            self.assertLess(values.max().item(), 1.25)

    def test_a_gradient_of_zeros_stays_one(self):
        muon = {"newton_schulz_steps": 5, "newton_schulz_coefficients": [3.4445, -4.775, 2.0315]}
        self.assertTrue(torch.equal(orthogonalised(torch.zeros(3, 5), muon), torch.zeros(3, 5)))


if __name__ == "__main__":
    unittest.main()
