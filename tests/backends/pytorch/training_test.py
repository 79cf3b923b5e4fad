"""Training by the backend pytorch: precisions, micro-batches, resuming, what stops a run, compiling. Needs
torch."""
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

try:
    import numpy as np
    import torch
except ModuleNotFoundError:
    sys.exit(77)

BACKEND = os.path.join(os.path.dirname(__file__), "../../../backends/pytorch")
sys.path.insert(0, BACKEND)

import compilation  # noqa: E402
import safetensors_files  # noqa: E402
import training  # noqa: E402
import worker  # noqa: E402
from protocol import Diverged, TrainingFailed, WrongRequest  # noqa: E402
from steps import Step  # noqa: E402

CPU = torch.device("cpu")
HEAD = "import torch\nfrom torch import nn\n\n\nclass MyMixer(nn.Module):\n"
BLOCK = HEAD + """\
    def __init__(self, section, model):
        super().__init__()
        self.out = nn.Linear(model["hidden_size"], model["hidden_size"], bias=False)

    def forward(self, x, context):
        mixed = nn.functional.dropout(x.cumsum(1), 0.2, self.training)
        return self.out(mixed)
"""
GLA5 = {"num_heads": 2, "expand_k": 0.5, "expand_v": 1.0, "qkv_activation": "silu", "gate_rank": 4,
        "gate_normalizer": 16, "output_gate_rank": 4}


def model_of(layers, source=BLOCK):
    model = {"vocab_size": 17, "hidden_size": 16, "num_layers": 2, "layers": layers, "tie_embeddings": False,
             "norm": {"kind": "rms_norm", "eps": 1e-5}, "mlp": {"kind": "swiglu", "intermediate_size": 24},
             "canon": {"set": "ABCD", "kernel": 4, "residual": True, "activation": "none"},
             "attention": {"num_heads": 2, "num_kv_heads": 1, "head_dim": 8, "qk_norm": "none",
                           "position": {"kind": "rope", "rope_dim": None, "theta": 1e4, "pairing": "halves"}}}
    if "my_mixer" in layers:
        model["blocks"] = {"my_mixer": {"file": "/project/blocks/my_mixer.py", "at": "", "source": source}}
    return model


def experiment_of(layers=("attention",), source=BLOCK, lr=1e-2, **train):
    return {"seed": 5, "model": model_of(list(layers), source),
            "optimizer": {"type": "adamw", "lr": lr, "betas": [0.9, 0.99], "eps": 1e-8, "weight_decay": 0.01},
            "train": {"precision": "float32", "bfloat16_weights": "none", "deterministic": True, "seq_len": 12,
                      "batch_size": 4, "micro_batch_size": 0, "grad_clip": 1.0,
                      "z_loss": {"kind": "none", "coefficient": 0.0}, **train}}


def rows_of(step):
    ids = np.random.default_rng(step).integers(0, 17, (4, 13))
    return np.ascontiguousarray(ids[:, :-1]), np.ascontiguousarray(ids[:, 1:])


class Run:
    """Steps of a small model, whose weights are drawn the same each time."""

    def __init__(self, experiment):
        self.experiment, self.said = experiment, []
        self.model = training.build(experiment, CPU)
        generator = torch.Generator().manual_seed(3)
        with torch.no_grad():
            for weight in self.model.parameters():
                weight.copy_(0.2 * torch.randn(weight.shape, generator=generator))
        self.updates = training.make_updates(experiment, self.model)
        self.updates.copy_weights()
        self.steps = Step(self.model, self.updates, experiment, CPU, self.said.append)

    def losses(self, first, last):
        found = []
        for step in range(first, last):
            self.steps.set_totals(0.0, 0.0)
            self.steps.run(*rows_of(step), step, 1e-2)
            found.append(self.steps.read_totals()[0])
        return found


class Precisions(unittest.TestCase):
    def test_bfloat16_is_near_float32_in_every_kind_of_layer(self):
        for layers in (["attention"], ["my_mixer", "attention"]):
            source = BLOCK.replace("0.2, self.training", "0.0, self.training")
            exact = Run(experiment_of(layers, source)).losses(0, 10)
            for weights in ("none", "master_copies"):
                run = Run(experiment_of(layers, source, precision="bfloat16", bfloat16_weights=weights))
                rounded = run.losses(0, 10)
                self.assertNotEqual(exact, rounded)
                for one, other in zip(exact, rounded):
                    self.assertAlmostEqual(one, other, delta=0.02 * one)

    def test_which_weights_are_bfloat16(self):
        run = Run(experiment_of(precision="bfloat16", bfloat16_weights="master_copies"))
        run.losses(0, 1)
        for weight in run.model.parameters():
            self.assertEqual(weight.dtype, torch.bfloat16 if weight.dim() == 2 else torch.float32)
        for weight, updated in zip(run.updates.weights, run.updates.updated):
            self.assertEqual(updated.dtype, torch.float32)
            self.assertTrue(torch.equal(weight, updated.to(weight.dtype)))
        kept = run.updates.named_state()
        self.assertIn("model.embed_tokens.weight.master_weight", kept)
        self.assertNotIn("model.norm.weight.master_weight", kept)

    def test_copies_keep_updates_that_bfloat16_would_lose(self):
        experiment = experiment_of(precision="bfloat16", bfloat16_weights="master_copies", grad_clip=0)
        run = Run(experiment)
        before = run.updates.updated[0].clone()
        for step in range(3):
            run.steps.run(*rows_of(step), step, 1e-7)
        self.assertFalse(torch.equal(before, run.updates.updated[0]))

    def test_what_is_not_supported_is_said(self):
        experiment = experiment_of(precision="bfloat16", bfloat16_weights="stochastic_rounding")
        experiment.update(data={"source": "text"}, schedule={"type": "constant"})
        experiment["train"].update(document_mask=False, initial_weights="")
        experiment["optimizer"]["type"] = "adamw"
        with self.assertRaises(WrongRequest) as caught:
            worker.refuse_unsupported(experiment)
        self.assertEqual(caught.exception.field, "train.bfloat16_weights")
        self.assertIn("none, master_copies", caught.exception.hint)


class Steps(unittest.TestCase):
    def test_micro_batches_have_the_losses_of_the_whole(self):
        whole = Run(experiment_of(precision="float64")).losses(0, 6)
        for rows in (1, 3):
            parts = Run(experiment_of(precision="float64", micro_batch_size=rows)).losses(0, 6)
            for one, other in zip(whole, parts):
                self.assertAlmostEqual(one, other, delta=1e-11)

    def test_a_resumed_run_has_the_same_bits(self):
        for settings in ({}, {"precision": "bfloat16", "bfloat16_weights": "master_copies"}):
            experiment = experiment_of(["my_mixer", "attention"], **settings)
            whole = Run(experiment)
            expected = whole.losses(0, 8)
            first = Run(experiment)
            self.assertEqual(first.losses(0, 4), expected[:4])
            with tempfile.TemporaryDirectory() as folder:
                places = [os.path.join(folder, name) for name in ("weights", "optimizer")]
                for place, tensors in zip(places, (dict(first.model.named_parameters()),
                                                   first.updates.named_state())):
                    safetensors_files.write(place, tensors)
                second = Run(experiment)
                training.copy_into(second.model, safetensors_files.read(places[0]))
                second.updates.load_state(safetensors_files.read(places[1]), 4)
            self.assertEqual(second.losses(4, 8), expected[4:])
            for one, other in zip(whole.model.parameters(), second.model.parameters()):
                self.assertTrue(torch.equal(one, other))


def kept_bytes(model, rows):
    """Of the tensors that operations keep for the backward pass, each memory once."""
    kept = {}

    def keep(tensor):
        kept[tensor.storage().data_ptr()] = tensor.storage().nbytes()
        return tensor
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model(torch.from_numpy(rows[0]))
    for weight in model.parameters():
        kept.pop(weight.storage().data_ptr(), None)
    return sum(kept.values())


class Checkpoints(unittest.TestCase):
    def test_a_link_in_the_place_of_the_folder_is_refused(self):
        with tempfile.TemporaryDirectory() as folder:
            run, elsewhere = os.path.join(folder, "run"), os.path.join(folder, "elsewhere")
            os.mkdir(elsewhere)
            for link in (os.path.join(run, "checkpoints"), run):
                if link != run:
                    os.mkdir(run)
                os.symlink(elsewhere, link)
                with self.assertRaisesRegex(TrainingFailed, "run/checkpoints' is no folder"):
                    with training.pinned_checkpoints(run):
                        self.fail()
                os.remove(link)
                shutil.rmtree(run, ignore_errors=True)
            self.assertEqual(os.listdir(elsewhere), [])

    def test_what_is_written_stays_where_it_was_begun(self):
        with tempfile.TemporaryDirectory() as run, tempfile.TemporaryDirectory() as elsewhere:
            with training.pinned_checkpoints(run) as folder:
                os.rename(os.path.join(run, "checkpoints"), os.path.join(run, "away"))
                os.symlink(elsewhere, os.path.join(run, "checkpoints"))
                aside = os.path.join(folder, ".tmp-000000001")
                os.mkdir(aside)
                training.write_synced(os.path.join(aside, "state.json"), "{}")
                training.replace_folder(aside, os.path.join(folder, "000000001"))
            self.assertEqual(os.listdir(elsewhere), [])
            self.assertEqual(os.listdir(os.path.join(run, "away/000000001")), ["state.json"])

    def test_a_run_folder_that_was_removed_does_not_come_back(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(FileNotFoundError):
                with training.pinned_checkpoints(os.path.join(folder, "gone")):
                    self.fail()
            self.assertEqual(os.listdir(folder), [])


class Recomputing(unittest.TestCase):
    LAYERS = (("attention",), ("gla5",), ("my_mixer",))  # the last one draws random numbers

    def outcome(self, layers, recompute, **train):
        experiment = experiment_of(layers, recompute=recompute, **train)
        experiment["model"]["gla5"] = GLA5
        run = Run(experiment)
        losses = run.losses(0, 4)
        return losses, [weight.grad for weight in run.model.parameters()], list(run.model.parameters())

    def test_the_bits_are_those_of_what_is_kept(self):
        for layers in self.LAYERS:
            for train in ({}, {"precision": "bfloat16"}, {"micro_batch_size": 3}):
                expected = self.outcome(layers, "none", **train)
                self.assertNotEqual(expected[0][0], expected[0][-1])
                for recompute in ("mlp", "blocks"):
                    with self.subTest(layers=layers, recompute=recompute, **train):
                        losses, gradients, weights = self.outcome(layers, recompute, **train)
                        self.assertEqual(losses, expected[0])
                        self.assertTrue(all(map(torch.equal, gradients, expected[1])))
                        self.assertTrue(all(map(torch.equal, weights, expected[2])))

    def test_less_is_kept(self):
        none, mlp, blocks = (kept_bytes(training.build(experiment_of(recompute=recompute), CPU), rows_of(0))
                             for recompute in ("none", "mlp", "blocks"))
        self.assertLess(mlp, 0.8 * none)
        self.assertLess(blocks, 0.3 * none)


class NotFinite(unittest.TestCase):
    def said_of(self, source, **settings):
        with self.assertRaises(Diverged) as caught:
            Run(experiment_of(["my_mixer"], source, **settings)).losses(0, 3)
        return caught.exception

    def test_the_block_that_gives_them_is_named(self):
        said = self.said_of(BLOCK.replace("self.out(mixed)", "self.out(mixed) / (context.layer - 1)"))
        self.assertIn("block 'my_mixer' in layer 1: the training loss is nan", str(said))
        self.assertEqual(said.field, "model.blocks.my_mixer.file")

    def test_the_block_whose_gradient_is_none_is_named(self):
        root = "self.out(mixed) + (0 * self.out.weight).sum().sqrt()"
        said = self.said_of(BLOCK.replace("self.out(mixed)", root))
        self.assertIn("block 'my_mixer' in layer 1: the norm of the gradients is nan", str(said))
        self.assertIn("'model.layers.1.my_mixer.out.weight'", str(said))

    def test_weights_that_are_none_are_named(self):
        run = Run(experiment_of())
        with torch.no_grad():
            run.model.model.norm.weight[3] = float("inf")
        with self.assertRaises(Diverged) as caught:
            run.losses(0, 1)
        self.assertIn("'model.norm.weight' has values that are not finite", str(caught.exception))


class Compiling(unittest.TestCase):
    def chosen(self, value, function=None, device=CPU, deterministic=False):
        said = []
        compiler = mock.patch.object(torch, "compile", function or (lambda f, **_: f), create=True)
        with compiler, mock.patch.dict(os.environ, {compilation.VARIABLE: value}):
            return compilation.compiled(lambda x: x, device, deterministic, said.append), said

    def test_what_is_compiled(self):
        self.assertIsNotNone(self.chosen("true")[0])
        self.assertEqual(self.chosen("false"), (None, ["note: steps are not compiled: "
                                                       "FORGE_PYTORCH_COMPILE is false"]))
        self.assertEqual(self.chosen("auto"), (None, []))
        with self.assertRaises(WrongRequest):
            self.chosen("yes")

    def test_a_gpu_compiles_unless_the_run_is_deterministic(self):
        gpu = torch.device("cuda")
        with mock.patch.dict(sys.modules, {"triton": mock.Mock()}):
            self.assertIsNotNone(self.chosen("auto", device=gpu)[0])
            self.assertIn("train.deterministic", self.chosen("auto", device=gpu, deterministic=True)[1][0])
        with mock.patch.dict(sys.modules, {"triton": None}):
            self.assertIn("triton", self.chosen("auto", device=gpu)[1][0])

    def test_steps_are_plain_where_compiled_code_fails(self):
        def fails(_, **__):
            def broken(*_):
                raise RuntimeError("no compiler here\nof many lines")
            return broken
        with mock.patch.object(torch, "compile", fails, create=True), \
                mock.patch.dict(os.environ, {compilation.VARIABLE: "true"}):
            run = Run(experiment_of())
            losses = run.losses(0, 3)
        self.assertEqual(losses, Run(experiment_of()).losses(0, 3))
        self.assertEqual(run.said, ["note: steps are not compiled: RuntimeError: no compiler here"])
        self.assertIsNone(run.steps.compile_seconds)

    def test_the_time_of_the_compiler_is_told(self):
        with mock.patch.object(torch, "compile", lambda f, **_: f, create=True), \
                mock.patch.dict(os.environ, {compilation.VARIABLE: "true"}):
            run = Run(experiment_of())
            run.losses(0, 2)
        self.assertGreater(run.steps.compile_seconds, 0)
        self.assertGreaterEqual(run.steps.first_step_seconds, run.steps.compile_seconds)

    def test_a_long_compilation_gives_signs_of_life(self):
        shown = []
        with mock.patch.object(compilation, "SIGN_SECONDS", 0.01):
            with compilation.signs_of_life(lambda phase, fraction: shown.append((phase, fraction))):
                while len(shown) < 3:
                    pass
        self.assertEqual({phase for phase, _ in shown}, {"compile"})
        self.assertLess(shown[0][1], shown[2][1])


class Benchmarks(unittest.TestCase):
    def test_windows_are_measured_when_they_are_asked_for(self):
        experiment = experiment_of()
        experiment.update(data={"source": "text", "seed": 1}, schedule={"type": "constant"})
        experiment["train"].update(document_mask=False, initial_weights="")
        experiment["optimizer"]["type"] = "adamw"
        request = {"job": "bench", "experiment": experiment, "window_steps": 2, "device": "cpu", "threads": 1}
        lines = json.dumps(request) + "\n" + '{"window":2}\n{"window":3}\n'
        done = subprocess.run([sys.executable, "-B", os.path.join(BACKEND, "worker.py")], input=lines.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        events = [json.loads(line) for line in io.BytesIO(done.stdout)]
        events = [event for event in events if event["event"] != "progress"]
        self.assertEqual([event["event"] for event in events],
                         ["hello", "environment", "ready", "window", "window", "result"])
        self.assertEqual([event["steps"] for event in events[3:5]], [2, 3])
        self.assertEqual(events[2]["tokens_per_step"], 48)
        self.assertGreater(events[4]["seconds"], 0)


class Pythons(unittest.TestCase):
    def test_another_python_is_taken_where_it_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            other = os.path.join(folder, "python")
            with open(other, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\necho other \"$@\"\n")
            os.chmod(other, 0o755)
            done = subprocess.run([sys.executable, "-B", os.path.join(BACKEND, "worker.py")],
                                  env=dict(os.environ, FORGE_PYTHON=other), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, text=True, check=True)
        self.assertIn("worker.py", done.stdout)
        self.assertTrue(done.stdout.startswith("other -B"))


if __name__ == "__main__":
    unittest.main()
