#!/usr/bin/env python3
"""app/python/forge.py against the program: runs are made, waited for and read back in a workspace of its own."""
import argparse
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "app" / "python"))
import forge  # noqa: E402  (of the folder above)

TINY = {"model.num_layers": 1, "model.hidden_size": 16, "model.attention.num_heads": 2,
        "model.mlp.intermediate_size": 16, "model.vocab_size": 300, "tokenizer.vocab_size": 300,
        "train.max_steps": 4, "train.seq_len": 16, "train.batch_size": 2, "train.eval_rows": 4, "train.log_every": 1}


class Module(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # A supervisor whose run has ended may still be leaving when the folder goes.
        cls.temporary = tempfile.TemporaryDirectory(prefix="forge-python-", ignore_cleanup_errors=True)
        home = Path(cls.temporary.name)
        os.environ.update(FORGE_CACHE_DIR=str(home / "cache"))
        os.environ.pop("FORGE_RUNS_DIR", None)
        for words, folder in ((["init", "w"], home), (["project", "create", "Canon AC"], home / "w")):
            subprocess.run([forge.program(), *words], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
        cls.folder = home / "w" / "canon_ac"
        settings = "".join(f"{key}: {value}\n" for key, value in TINY.items())
        for config in ("baseline", "variant"):
            file = cls.folder / "templates" / "configs" / f"train_{config}.yaml"
            text, _, variant = file.read_text().partition("[overrides]\n")
            file.write_text(f"{text}[overrides]\n{variant}{settings}")
        cls.seen = []
        cls.made = forge.run("train_baseline", "train_variant", seeds=2, threads=1, progress=cls.seen.append,
                             folder=cls.folder)

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_runs_are_made_and_waited_for(self):
        self.assertEqual(self.made.column("status"), ["completed"] * 4)
        self.assertEqual(self.made.column("seed"), [42, 42, 43, 43])  # all configs of each
        self.assertEqual(self.seen[-1], self.made)
        again = forge.run("train_baseline", seeds=[43, 42], threads=1, folder=self.folder)
        self.assertEqual(again.column("id"), [self.made[2]["id"], self.made[0]["id"]])  # none was repeated
        self.assertEqual(again, forge.wait(again, folder=self.folder))

    def test_texts_of_overrides_stay_as_they_are(self):
        for text in ("lr #2 of three", "# all", "null", "a: b", "it's \u00fc \U0001f600 \"quoted\"", "[1, 2", "0x10"):
            planned = forge.run("train_baseline", overrides={"description": text}, threads=1, until_done=False,
                                options=["--force"], folder=self.folder)
            self.assertEqual(forge.wait(planned, folder=self.folder).column("description"), [text])

    def test_names_may_be_a_list_and_a_plan_is_returned_as_one(self):
        both = forge.run(["train_baseline", "train_variant"], seeds=2, threads=1, folder=self.folder)
        self.assertEqual(both.column("id"), self.made.column("id"))
        planned = forge.run("train_baseline", threads=1, options=["--dry-run"], folder=self.folder)
        self.assertEqual(planned.column("action"), ["cached"])
        with self.assertRaisesRegex(forge.ForgeError, "surrogates"):
            forge.run("train_baseline", overrides={"description": "\ud800"}, folder=self.folder)
        with self.assertRaisesRegex(forge.ForgeError, "null"):
            forge.runs("train\0baseline", folder=self.folder)

    def test_runs_are_found_by_conditions(self):
        chosen = forge.runs(where=["seed=43", "optimizer.lr>0"], sort="config", folder=self.folder)
        self.assertEqual(chosen.column("config"), ["train_baseline", "train_variant"])
        self.assertEqual(forge.runs(where="seed=9", folder=self.folder), [])
        self.assertEqual(len(forge.runs(limit=3, folder=self.folder)), 3)

    def test_curves_have_numbers(self):
        name = self.made[0]["id"]
        losses = forge.curves(name, metric="train_loss", folder=self.folder)
        self.assertEqual(losses.column("step"), [1, 2, 3, 4])
        self.assertEqual(losses[-1]["value"], self.made[0]["train_loss"])
        evaluated = forge.curves(name, metric="eval_loss", folder=self.folder)
        self.assertEqual(evaluated[-1]["value"], self.made[0]["eval_loss"])
        self.assertEqual({row["metric"] for row in forge.curves(name, folder=self.folder)},
                         {"train_loss", "learning_rate", "gradient_norm", "tokens_per_second", "eval_loss"})

    def test_what_cannot_be_answered_is_said(self):
        with self.assertRaisesRegex(forge.ForgeError, "no run reported 'eval_los': there are eval_loss, "):
            forge.curves(self.made[0]["id"], metric="eval_los", folder=self.folder)
        self.assertEqual(forge.curves(self.made[0]["id"], metric="validation_loss", folder=self.folder), [])
        with self.assertRaisesRegex(forge.ForgeError, "not JSON"):
            forge.run("train_baseline", options=["--help"], folder=self.folder)
        for call in (forge.run, forge.runs, forge.curves, forge.table):
            with self.assertRaisesRegex(forge.ForgeError, "'--all' is an option and no name"):
                call("--all", folder=self.folder)

    def test_a_table_has_rows_and_seeds(self):
        table = forge.table("variants", folder=self.folder)
        self.assertEqual(table.rows.column("config"), ["train_baseline", "train_variant"])
        self.assertEqual(table.setup["Seeds"], "42, 43")
        self.assertEqual([row["eval_loss"] for row in table.seeds() if row["config"] == "train_variant"],
                         [self.made[1]["eval_loss"], self.made[3]["eval_loss"]])
        self.assertIn("<th>config</th>", table.rows._repr_html_())
        self.assertIn("<td>train_variant</td>", table.seeds()._repr_html_())

    def test_rows_are_escaped_and_become_a_frame(self):
        self.assertIn("&lt;b&gt;", forge.Rows([{"name": "<b>"}])._repr_html_())
        try:
            import pandas
        except ImportError:
            self.skipTest("no pandas here")
        self.assertIsInstance(self.made.frame(), pandas.DataFrame)
        self.assertEqual(list(self.made.frame()["seed"]), [42, 42, 43, 43])

    def test_mistakes_are_told_in_forge_s_words(self):
        with self.assertRaises(forge.ForgeError) as unknown:
            forge.run("train_basline", folder=self.folder)
        self.assertIn("did you mean 'train_baseline'", str(unknown.exception))
        self.assertEqual(unknown.exception.exit_code, 2)
        with self.assertRaisesRegex(forge.ForgeError, "no run has the id gone-0123456789ab|no run"):
            forge.wait(["gone-0123456789ab"], folder=self.folder)
        with self.assertRaisesRegex(forge.ForgeError, "could not be started"):
            forge.runs(folder=self.folder / "nowhere")
        with self.assertRaisesRegex(forge.ForgeError, "not a finite number|diverged|is no number"):
            forge.run("train_baseline", overrides={"optimizer.lr": 1e30, "train.max_steps": 40}, threads=1,
                      folder=self.folder)

    def test_what_is_no_override_and_no_seed_is_told(self):
        def plan(**arguments):
            return forge.run("train_baseline", threads=1, options=["--dry-run"], folder=self.folder, **arguments)
        for wrong, text in (({"overrides": {"name=x;seed": 1}}, "'name=x;seed' is no config key"),
                            ({"overrides": {"seed": {1, 2}}}, r"seed cannot be set to \{1, 2\}"),
                            ({"overrides": {"seed": b"1"}}, "seed cannot be set to b'1'"),
                            ({"seeds": []}, "seeds has no seed")):
            with self.assertRaisesRegex(forge.ForgeError, text):
                plan(**wrong)
        text = self.folder / "text.txt"
        text.write_text("a line of text that is long enough for some rows\n" * 200)
        self.addCleanup(text.unlink)
        planned = plan(overrides={"data.source": "text", "data.path": text})
        self.assertEqual(planned.column("action"), ["new"])

    def test_runs_are_waited_for_by_what_their_ids_begin_with(self):
        name = self.made[0]["id"]
        self.assertEqual(forge.wait(name[:-3], folder=self.folder).column("id"), [name])

    def test_who_waits_too_long_is_told_and_the_runs_go_on(self):
        started = forge.run("train_baseline", overrides={"train.max_steps": 1000000}, threads=1, until_done=False,
                            folder=self.folder)
        self.addCleanup(subprocess.run, [forge.program(), "runs", "rm", started[0]["id"]], cwd=self.folder,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        self.addCleanup(subprocess.run, [forge.program(), "runs", "stop", started[0]["id"]], cwd=self.folder,
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        with self.assertRaisesRegex(TimeoutError, "1 of 1 runs go on"):
            forge.wait(started, timeout=0, folder=self.folder)
        self.assertIn(forge.runs(started[0]["id"], folder=self.folder)[0]["status"], forge.ACTIVE)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--forge", required=True)
    arguments, rest = parser.parse_known_args()
    os.environ["FORGE_PROGRAM"] = arguments.forge
    unittest.main(argv=[sys.argv[0], *rest])
