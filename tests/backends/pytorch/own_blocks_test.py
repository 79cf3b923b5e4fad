"""Blocks of the user's own: what a description says, and that each mistake is named with the user's own
lines. Needs torch."""
import os
import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    sys.exit(77)

BACKEND = os.path.join(os.path.dirname(__file__), "../../../backends/pytorch")
sys.path.insert(0, BACKEND)

import generate  # noqa: E402
import own_blocks  # noqa: E402
import training  # noqa: E402
import trial  # noqa: E402
from model import Model, loss_of, scored_of  # noqa: E402

HEAD = "import torch\nfrom torch import nn\n\n\nclass MyMixer(nn.Module):\n"
GOOD = HEAD + """\
    def __init__(self, section, model):
        super().__init__()
        self.out = nn.Linear(model["hidden_size"], model["hidden_size"], bias=False)
        self.scale = section.get("scale", 1.0)

    def forward(self, x, context):
        return self.out(x.cumsum(1)) * self.scale
"""


def model_of(source, **settings):
    return {"vocab_size": 17, "hidden_size": 8, "num_layers": 2, "layers": ["my_mixer"],
            "tie_embeddings": False, "norm": {"kind": "rms_norm", "eps": 1e-5}, "canon": {"set": ""},
            "mlp": {"kind": "swiglu", "intermediate_size": 16},
            "blocks": {"my_mixer": {"file": "/project/blocks/my_mixer.py", "at": "",
                                    "source": source, **settings}}}


def describe(source, precision="float32", seq_len=16, **settings):
    experiment = {"seed": 1, "train": {"seq_len": seq_len, "precision": precision},
                  "model": model_of(source, **settings)}
    return trial.describe(experiment, training.DTYPES)["my_mixer"]


def with_forward(body, more=""):
    constructor, _ = GOOD.split("    def forward")
    return constructor + more + "\n    def forward(self, x, context):\n        " + body + "\n"


class Descriptions(unittest.TestCase):
    def test_weights_operations_and_memory(self):
        said = describe(GOOD)
        self.assertEqual(said["weights"], [
            {"name": "out.weight", "shape": [8, 8], "init": {"kind": "module"}}])
        self.assertEqual(said["module"], "my_mixer")
        # The product alone: 8 x 8 multiply-adds a token, whatever the row's length.
        self.assertEqual(said["flops"], {"fixed": 128.0, "per_length": 0.0, "declared": False})
        # The product keeps its input.
        self.assertEqual(describe(with_forward("return self.out(x)"))["saved"], 8)

    def test_counted_operations_that_grow_with_the_row(self):
        square = with_forward("return self.out((x @ x.transpose(1, 2)).tril() @ x)")
        self.assertEqual(describe(square)["flops"],
                         {"fixed": 128.0, "per_length": 2 * 2 * 8, "declared": False})

    def test_declared_operations(self):
        source = GOOD + "\n    def flops(self, length):\n        return 7 + 3 * length\n"
        self.assertEqual(describe(source)["flops"],
                         {"fixed": 7.0, "per_length": 3.0, "declared": True})

    def test_declared_initial_values_and_module(self):
        source = GOOD.replace(HEAD, HEAD + "    module = 'self_attn'\n"
                              "    initial = {'out.weight': {'kind': 'normal', 'std': 1}}\n\n")
        said = describe(source)
        self.assertEqual(said["module"], "self_attn")
        self.assertEqual(said["weights"][0]["init"], {"kind": "normal", "std": 1.0})
        role = source.replace("{'kind': 'normal', 'std': 1}", "'mixer_output'")
        self.assertEqual(describe(role)["weights"][0]["init"], {"role": "mixer_output"})


class Mistakes(unittest.TestCase):
    def said_of(self, source, **settings):
        with self.assertRaises(own_blocks.OwnBlockError) as caught:
            describe(source, **settings)
        self.assertEqual(caught.exception.field, "model.blocks.my_mixer.file")
        return str(caught.exception) + " | " + caught.exception.hint

    def assert_said(self, words, source, **settings):
        said = self.said_of(source, **settings)
        for word in words if isinstance(words, list) else [words]:
            self.assertIn(word, said)

    def test_of_a_line_that_no_editor_shows(self):
        self.assert_said("carriage return without a line feed", "# a comment \rimport os\n" + GOOD)
        self.assertIn("weights", describe(GOOD.replace("\n", "\r\n")))

    def test_of_the_file(self):
        self.assert_said(["SyntaxError", "/project/blocks/my_mixer.py", "line 5"],
                         HEAD.replace("Module):", "Module)"))
        self.assert_said(["no class MyMixer", "its classes are Mixer"],
                         GOOD.replace("MyMixer", "Mixer"))
        self.assert_said("no class MyMixer that is a torch.nn.Module",
                         GOOD.replace("(nn.Module)", ""))
        self.assert_said("imports installed modules only", "import my_helpers\n" + GOOD)

    def test_of_the_constructor(self):
        self.assert_said(["fails in its constructor: ZeroDivisionError", 'my_mixer.py", line 7',
                          "super().__init__(1 // 0)"],
                         GOOD.replace("super().__init__()", "super().__init__(1 // 0)"))
        self.assert_said("__init__(self, section, model)", GOOD.replace("section, model", "section"))
        self.assert_said("model.blocks.my_mixer.heads is not set",
                         GOOD.replace('section.get("scale", 1.0)', 'section["heads"]'))
        self.assert_said("does not read model.blocks.my_mixer.scael", GOOD, scael=2)

    def test_of_forward(self):
        self.assert_said(["fails in forward for an input of [1, 16, 8]", "line 13", "self.out(x[0].t())"],
                         with_forward("return self.out(x[0].t())"))
        self.assert_said("gives [1, 16, 4] for an input of [1, 16, 8]",
                         with_forward("return self.out(x)[..., :4]"))
        self.assert_said("gives a tuple", with_forward("return self.out(x), None"))
        self.assert_said("torch.float64", with_forward("return self.out(x).double()"))
        self.assert_said("values that are not finite", with_forward("return self.out(x) / 0"))
        self.assert_said("NotImplementedError", GOOD.split("    def forward")[0])

    def test_of_what_trains_wrongly(self):
        self.assert_said("which forward does not use", with_forward("return x * self.scale + 0 * x"))
        self.assert_said("lets a token see later ones", with_forward("return self.out(x.flip(1))"))
        self.assert_said("lets a token see later ones",
                         with_forward("return self.out(x - x.mean(1, keepdim=True))"))
        buffer = "        self.register_buffer('seen', torch.zeros(1))\n"
        self.assert_said("changes its buffer 'seen'",
                         with_forward("self.seen += 1\n        return self.out(x)", buffer))
        self.assert_said("a gradient that is not finite",
                         with_forward("return self.out(x) * (self.out.weight.sum() * 0).sqrt()"))

    def test_of_chunks_that_are_seen_whole(self):
        def mixed_within(chunk):
            return with_forward(f"rows, length, width = x.shape\n"
                                f"        whole = torch.cat((x, x.new_zeros(rows, -length % {chunk}, width)), 1)\n"
                                f"        mean = whole.view(rows, -1, {chunk}, width).mean(2, keepdim=True)\n"
                                f"        return self.out(mean.expand(-1, -1, {chunk}, -1).reshape(rows, -1, width)[:, :length])")

        for chunk, seq_len in ((2, 16), (4, 16), (8, 128), (64, 256), (100, 300)):
            self.assert_said(["lets a token see later ones", "the output of token 1 changes by"], mixed_within(chunk),
                             seq_len=seq_len)
        # Chunks alone where there are several.
        alone = mixed_within(64).replace("        whole =", "        if length <= 64:\n            return self.out(x)\n        whole =")
        self.assert_said("in a row of 256 the output of token 1 changes by", alone, seq_len=256)
        # Each token sees itself and those before: sums, which are rounded in another order, too.
        describe(with_forward("return self.out(x.cumsum(1) / torch.arange(1, x.shape[1] + 1)[:, None])"), seq_len=1000)

    def test_of_what_is_seen_in_evaluation_alone_or_by_ids(self):
        self.assert_said("lets a token see later ones in evaluation",
                         with_forward("return self.out(x if self.training else x + x.roll(-1, 1))"))
        self.assert_said("lets a token see later ones",
                         with_forward("return self.out(x) * (1 + context.ids.roll(-1, 1)[:, :, None])"))
        dropout = with_forward("return self.out(nn.functional.dropout(x, 0.5, self.training))")
        self.assertEqual(describe(dropout)["module"], "my_mixer")

    def test_of_rows_that_are_mixed(self):
        self.assert_said(["lets a row see other rows of its batch", "dimension 0"],
                         with_forward("return self.out(x - x.mean(0, keepdim=True) + x[:1])"))
        self.assert_said("lets a row see other rows of its batch in evaluation",
                         with_forward("return self.out(x if self.training else x + x.roll(1, 0))"))

    def test_of_what_goes_on_from_call_to_call(self):
        self.assert_said("changes its 'calls' from", with_forward(
            "self.calls += 1\n        return self.out(x if self.calls < 200 else 2 * x)", "        self.calls = 0\n"))
        kept = with_forward("self.length = max(self.length, x.shape[1])\n        return self.out(x)", "        self.length = 0\n")
        self.assertEqual(describe(kept)["module"], "my_mixer")

    def test_of_chance_that_no_seed_repeats(self):
        import_random = GOOD.replace("import torch\n", "import random\nimport torch\n", 1)
        self.assert_said(["computes other values when it is given the same input again", "not from random"],
                         import_random.replace("* self.scale", "* random.random()"))
        self.assert_said("computes other values", with_forward(
            "self.calls = getattr(self, 'calls', 0) + 1\n        return self.out(x) * self.calls"))
        dropout = with_forward("return self.out(nn.functional.dropout(x, 0.5, self.training))")
        self.assertEqual(describe(dropout)["module"], "my_mixer")

    def test_of_bfloat16(self):
        mixed = with_forward("rows = torch.zeros(x.shape)\n        rows[x > 0] = self.out(x)[x > 0]\n"
                             "        return rows")
        self.assertEqual(describe(mixed)["module"], "my_mixer")
        with self.assertRaises(own_blocks.OwnBlockError) as caught:
            describe(mixed, "bfloat16")
        self.assertIn("fails in forward in bfloat16", str(caught.exception))
        self.assertIn("rows[x > 0] = ", caught.exception.hint)
        described = describe(GOOD, "bfloat16")
        self.assertEqual(described["weights"], describe(GOOD)["weights"])

    def test_of_what_a_gpu_computes_in_any_order(self):
        problem = RuntimeError("cumsum_cuda_kernel does not have a deterministic implementation")
        self.assertIn("train.deterministic: false", own_blocks.failure("my_mixer", "training", problem).hint)

    def test_of_declarations(self):
        def declaring(initial):
            return GOOD.replace(HEAD, HEAD + f"    initial = {initial}\n\n")
        self.assert_said(["'in.weight'", "out.weight"], declaring({"in.weight": "projection"}))
        self.assert_said("no role", declaring({"out.weight": "output"}))
        self.assert_said("no initial distribution", declaring({"out.weight": {"kind": "cauchy"}}))
        self.assert_said("has the numbers std", declaring({"out.weight": {"kind": "normal"}}))
        self.assert_said("which is no name", GOOD.replace(HEAD, HEAD + "    module = 'a.b'\n\n"))
        with self.assertRaises(own_blocks.WrongRequest) as caught:
            Model(model_of(GOOD.replace(HEAD, HEAD + "    module = 'mlp'\n\n")))
        self.assertIn("two blocks of a layer have weights called mlp", str(caught.exception))


class Models(unittest.TestCase):
    def test_each_layer_draws_its_own_values_by_the_seed(self):
        def weights(seed):
            return [layer.my_mixer.out.weight for layer in Model(model_of(GOOD), seed).model.layers]
        first, again, other = weights(1), weights(1), weights(2)
        self.assertTrue(torch.equal(first[0], again[0]) and torch.equal(first[1], again[1]))
        self.assertFalse(torch.equal(first[0], first[1]))
        self.assertFalse(torch.equal(first[0], other[0]))

    def test_a_block_is_an_mlp_and_stands_beside_canon_layers(self):
        model = model_of(GOOD, at="AC")
        model["mlp"]["kind"] = "my_mixer"
        with self.assertRaises(own_blocks.WrongRequest):  # as the mixer, too, it would be two of a name
            Model(model)
        model["layers"] = ["attention"]
        model["attention"] = {"num_heads": 2, "num_kv_heads": 2, "head_dim": 4, "qk_norm": "none",
                              "position": {"kind": "nope"}}
        names = [name for name, _ in Model(model, 1).named_parameters() if ".layers.0." in name]
        self.assertEqual([name.split("layers.0.")[1] for name in names], [
            "input_layernorm.weight", "my_mixerA.out.weight", "self_attn.q_proj.weight",
            "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
            "post_attention_layernorm.weight", "my_mixerC.out.weight", "my_mixer.out.weight"])
        layer = Model(model, 1).double().model.layers[0]
        x, ids = torch.randn(1, 5, 8, dtype=torch.float64), torch.zeros(1, 5, dtype=torch.int64)
        inside = layer.my_mixerA(layer.input_layernorm(x), None)
        y = x + layer.self_attn(inside)
        inside = layer.my_mixerC(layer.post_attention_layernorm(y), None)
        expected = y + layer.my_mixer(inside, None)
        self.assertTrue(torch.equal(layer(x, ids), expected))

    def test_constructors_leave_torchs_generator_alone(self):
        torch.manual_seed(5)
        expected = torch.rand(3)
        torch.manual_seed(5)
        own_blocks.build("my_mixer", model_of(GOOD), 0, 1)
        self.assertTrue(torch.equal(torch.rand(3), expected))

    def test_failures_while_training_show_the_users_lines(self):
        model = Model(model_of(with_forward("return self.out(x) if len(x) < 2 else x.nothing")), 1)
        try:
            model(torch.zeros(2, 4, dtype=torch.int64))
            self.fail("nothing was thrown")
        except AttributeError as problem:
            self.assertEqual(own_blocks.name_of_problem(problem), "my_mixer")
            failure = own_blocks.failure("my_mixer", "training", problem)
            said = str(failure) + failure.hint
        self.assertIn("fails in training: AttributeError", said)
        self.assertIn("x.nothing", said)

    def test_micro_batches_have_the_gradients_of_the_whole(self):
        torch.manual_seed(1)
        model = Model(model_of(GOOD), 1).double()
        for weight in model.parameters():
            torch.nn.init.normal_(weight, 0, 0.3)
        ids, targets = torch.randint(0, 17, (6, 5)), torch.randint(0, 17, (6, 5))
        targets[0, 1:] = targets[4] = -100
        for kind in ("none", "palm", "lingua_code"):
            z_loss = {"kind": kind, "coefficient": 1e-2}
            gradients = []
            for rows in (6, 4):
                model.zero_grad()
                total = 0.0
                for first in range(0, 6, rows):
                    part = slice(first, first + rows)
                    loss = loss_of(model(ids[part]), targets[part], z_loss, scored_of(targets, z_loss))
                    loss.backward()
                    total += loss.item()
                gradients.append([total] + [weight.grad.clone() for weight in model.parameters()])
            self.assertAlmostEqual(gradients[0][0], gradients[1][0], delta=1e-12)
            for one, other in zip(gradients[0][1:], gradients[1][1:]):
                self.assertLess((one - other).abs().max().item(), 1e-12)

    def test_chance_of_a_step_is_its_own(self):
        def drawn(step):
            own_blocks.seed_step(7, step)
            return torch.rand(4)
        self.assertTrue(torch.equal(drawn(3), drawn(3)))
        self.assertFalse(torch.equal(drawn(3), drawn(4)))


class Events:
    def __init__(self):
        self.sent = []

    def send(self, event, **fields):
        self.sent.append(fields)


class Generation(unittest.TestCase):
    def test_rows_of_unequal_length_go_on_as_each_would_alone(self):
        model = Model(model_of(GOOD), 3).double()
        with torch.no_grad():
            for weight in model.parameters():
                weight.copy_(0.3 * torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
        wanted = {"prompts": [[1, 2, 3], [4]], "samples": 2, "max_tokens": 6, "context": 7,
                  "temperature": 0.8, "seed": 5, "top_k": 9, "top_p": 0.9}

        def texts(prompts, batch_size):
            events = Events()
            generate.generate(model, {**wanted, "prompts": prompts, "batch_size": batch_size},
                              torch.device("cpu"), 17, events, lambda: False)
            drawn = {}
            for event in events.sent:
                for sample, token, end in zip(event["samples"], event["ids"], event["ended"]):
                    drawn.setdefault(sample, []).append((token, end))
            return drawn
        together, alone = texts(wanted["prompts"], 4), texts(wanted["prompts"], 1)
        self.assertEqual(together, alone)
        self.assertEqual([len(together[sample]) for sample in range(4)], [5, 5, 6, 6])
        self.assertEqual([together[sample][-1][1] for sample in range(4)],
                         ["context", "context", "length", "length"])
        self.assertNotEqual(together[0], together[1])  # samples have streams of their own

    def test_the_sampler_keeps_what_it_may(self):
        import numpy as np
        logits = np.log(np.array([0.5, 0.25, 0.15, 0.1]))
        chosen = {generate.Sampler({"temperature": 1, "top_p": 0.7}).choose(logits, lambda: u)
                  for u in (0.0, 0.3, 0.6, 0.7, 0.99)}
        self.assertEqual(chosen, {0, 1})
        self.assertEqual(generate.Sampler({"temperature": 1, "top_k": 1}).choose(logits, lambda: 0.99), 0)
        self.assertEqual(generate.Sampler({}).choose(logits, None), 0)


if __name__ == "__main__":
    unittest.main()
