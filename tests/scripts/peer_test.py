#!/usr/bin/env python3
"""forge and scripts/peer/torch_peer.py from equal weights on equal rows: their losses agree, step by step.

    peer_test.py --forge build/release/forge

Exit code 77, which CTest shows as skipped, where no Python with torch is found.
"""
import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SKIPPED = 77
sys.dont_write_bytecode = True


def run_with_torch():
    """Goes on in the first Python that has torch, which need not be this one."""
    try:
        import torch  # noqa: F401
        return
    except ImportError:
        pass
    other = "/usr/bin/python3"
    tried = "PEER_TEST_PYTHON" in os.environ
    command = [other, "-c", "import torch"]
    if not tried and subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode == 0:
        os.execve(other, [other, *sys.argv], dict(os.environ, PEER_TEST_PYTHON=other))
    print("skipped: no Python here has torch; scripts/setup --tests installs it", file=sys.stderr)
    sys.exit(SKIPPED)


if __name__ == "__main__":
    run_with_torch()

import torch  # noqa: E402

sys.path[:0] = [str(ROOT / "scripts" / "peer"), str(ROOT / "backends" / "pytorch")]
import safetensors_files  # noqa: E402
import torch_peer  # noqa: E402
from rows import TokenFile  # noqa: E402

SIZE = {"vocab": 300, "hidden": 64, "mlp": 96, "heads": 4, "layers": 2, "batch": 4, "seq": 32}
STEPS = 15
CLIP = 0.4  # the norms of these gradients are 0.5 to 1
# Relative, of every step's loss. Float32 and other orders of summation make a tenth of it; each of the wrong
# settings below makes more than twice as much.
TOLERANCE = 1e-5
CASES = {"train_llama": ("", False), "train_baseline": ("ABCD", False), "train_canon_a_nope": ("A", True)}


def write_text(path):
    chance = random.Random(1)
    words = ["".join(chance.choices("abcdefghij", k=chance.randint(2, 6))) for _ in range(300)]
    lines = (" ".join(chance.choices(words, k=12)) + "." for _ in range(600))
    path.write_text("\n".join(lines) + "\n")


class Losses(unittest.TestCase):
    forge = None  # program

    @classmethod
    def setUpClass(cls):
        scratch = tempfile.TemporaryDirectory()
        cls.addClassCleanup(scratch.cleanup)
        cls.folder = Path(scratch.name)
        write_text(cls.folder / "text.txt")
        torch.set_num_threads(1)

    def run_forge(self, config, runs, *settings):
        """Trains; returns the run's folder."""
        environment = dict(os.environ, FORGE_CACHE_DIR=str(self.folder / "cache"),
                           FORGE_RUNS_DIR=str(self.folder / runs))
        chosen = [
            "profile=full", "train.precision=float32", f"data.path={self.folder / 'text.txt'}", "data.order=sequential",
            f"tokenizer.vocab_size={SIZE['vocab']}", f"model.vocab_size={SIZE['vocab']}",
            f"model.hidden_size={SIZE['hidden']}", f"model.mlp.intermediate_size={SIZE['mlp']}",
            f"model.num_layers={SIZE['layers']}", f"model.attention.num_heads={SIZE['heads']}",
            f"model.attention.num_kv_heads={SIZE['heads']}",
            f"model.attention.head_dim={SIZE['hidden'] // SIZE['heads']}", f"train.seq_len={SIZE['seq']}",
            f"train.batch_size={SIZE['batch']}", f"train.grad_clip={CLIP}", "train.eval_every=0", "train.eval_rows=1",
            "train.log_every=1", "schedule.type=constant", *settings]
        command = [self.forge, "run", "-p", ROOT / "projects" / "canon", config, "--device", "cpu", "--threads", "1"]
        for setting in chosen:
            command += ["--set", setting]
        done = subprocess.run([str(word) for word in command], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stdout)
        folder, = (self.folder / runs).glob(f"{config}-*/")
        return folder

    def of_forge(self, config):
        """Weights that forge drew, and its losses from there on."""
        # The first step of a warm-up has a learning rate of 0: it saves the initial weights.
        first = self.run_forge(config, "first", "train.max_steps=1", "schedule.warmup_steps=500")
        weights, = first.glob("checkpoints/*/weights.safetensors")
        then = self.run_forge(config, "then", f"train.max_steps={STEPS}", "schedule.warmup_steps=0",
                              f"train.initial_weights={first}")
        events = [json.loads(line) for line in (then / "events.jsonl").read_text().splitlines()]
        train = [event for event in events if event["event"] == "train"]
        self.assertEqual([event["step"] for event in train], list(range(1, STEPS + 1)))
        self.assertGreater(min(event["gradient_norm"] for event in train), CLIP)
        return safetensors_files.read(weights), [event["loss"] for event in train]

    def batches(self):
        """forge's rows in their order: windows of one more id than are scored, which overlap by it."""
        path, = self.folder.glob("cache/data/*/*/train.tokens")
        ids = torch.from_numpy(TokenFile(path).ids.astype("int64"))
        rows = torch.stack([ids[i * SIZE["seq"] : (i + 1) * SIZE["seq"] + 1] for i in range(STEPS * SIZE["batch"])])
        return list(rows.split(SIZE["batch"]))

    def of_peer(self, case, weights, form="shift", **changes):
        canon, nope = case
        options = argparse.Namespace(device="cpu", precision="float32", canon=canon, nope=nope, canon_form=form,
                                     compile="none", graph=False)
        training = torch_peer.Training(options, SIZE, **{"clip": CLIP, **changes})
        training.model.load_state_dict(peer_weights(weights, canon), strict=False)
        self.assertEqual(set(training.model.state_dict()) - set(peer_weights(weights, canon)), {"cos", "sin"})
        training.batches = self.batches()
        return [training.step().item() for _ in range(STEPS)]

    def difference(self, found, wanted):
        return max(abs(a - b) / b for a, b in zip(found, wanted))

    def test_equal_weights_and_rows_give_equal_losses(self):
        for config, case in CASES.items():
            weights, losses = self.of_forge(config)
            for form in ("shift", "conv") if case[0] else ("shift",):
                with self.subTest(config=config, form=form):
                    difference = self.difference(self.of_peer(case, weights, form), losses)
                    print(f"{config} {form}: losses differ by {difference:.1e}", file=sys.stderr)
                    self.assertLess(difference, TOLERANCE)
            if config == "train_baseline":
                self.wrong_settings_are_seen(case, weights, losses)

    def wrong_settings_are_seen(self, case, weights, losses):
        swapped = dict(weights)
        for name, taps in weights.items():
            if "canonD" in name:
                swapped[name] = taps.flip(-1)
        wrong = {"beta2": {"betas": (0.9, 0.95)}, "no clipping": {"clip": 1e9}, "rate": {"lr": 1.01e-3},
                 "no decay": {"weight_decay": 0.0}, "taps in reverse": {"weights": swapped}}
        for name, changes in wrong.items():
            with self.subTest(wrong=name):
                changed = {"weights": weights, **changes}
                difference = self.difference(self.of_peer(case, changed.pop("weights"), **changed), losses)
                print(f"{name}: losses differ by {difference:.1e}", file=sys.stderr)
                self.assertGreater(difference, 2 * TOLERANCE)


def peer_weights(weights, canon):
    """forge's weights by the peer's names."""
    found = {"embed.weight": weights["model.embed_tokens.weight"], "norm.weight": weights["model.norm.weight"],
             "head.weight": weights["lm_head.weight"]}
    canons = {"A": "canonA", "B": "self_attn.canonB", "C": "canonC", "D": "mlp.canonD"}
    for i in range(SIZE["layers"]):
        def of(*names):
            return torch.cat([weights[f"model.layers.{i}.{name}.weight"] for name in names])  # noqa: B023
        found.update({
            f"blocks.{i}.norm1.weight": of("input_layernorm"),
            f"blocks.{i}.norm2.weight": of("post_attention_layernorm"),
            f"blocks.{i}.qkv.weight": of("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
            f"blocks.{i}.out.weight": of("self_attn.o_proj"),
            f"blocks.{i}.gate_up.weight": of("mlp.gate_proj", "mlp.up_proj"),
            f"blocks.{i}.down.weight": of("mlp.down_proj"),
            **{f"blocks.{i}.canon.{place}.weight": of(canons[place]) for place in canon}})
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--forge", required=True, help="the program")
    options, rest = parser.parse_known_args()
    Losses.forge = options.forge
    unittest.main(argv=[sys.argv[0], *rest])
