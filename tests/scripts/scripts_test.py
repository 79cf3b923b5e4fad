#!/usr/bin/env python3
"""Tests of scripts/bench-peer, scripts/bench-gpus, scripts/build-cuda and what scripts/prove says, with stand-ins for what they run."""
import io
import json
import os
import subprocess
import sys
import tempfile
import textwrap
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
SCRIPTS = HERE.parent.parent / "scripts"
sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))
from proofs.progress import Progress  # noqa: E402  (of the folder above)


def call(command, **options):
    return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          **options)


class Terminal(io.StringIO):
    def isatty(self):
        return True


class ProgressOfProofs(unittest.TestCase):
    def shown(self, stream, times):
        """What is said where one of four is done at each of these times."""
        clock = iter([0, *times])
        with Progress("kill", 4, stream, lambda: next(clock)) as progress:
            for done in range(len(times)):
                progress.show(done + 1, "1 within a save" if done == 2 else "")
        return stream.getvalue()

    def test_a_log_gets_a_line_every_ten_seconds(self):
        self.assertEqual(self.shown(io.StringIO(), [1, 10, 19, 21]), "kill: 2 of 4, 10 s\nkill: 4 of 4, 21 s\n")

    def test_a_terminal_gets_one_line_that_is_gone_at_the_end(self):
        self.assertEqual(self.shown(Terminal(), [0.1, 0.3, 1]),
                         "\r\033[Kkill: 2 of 4, 0 s\r\033[Kkill: 3 of 4, 1 within a save, 1 s\r\033[K")


class BenchPeer(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.results = Path(scratch.name, "results")

    def bench(self, fake, *arguments):
        command = [SCRIPTS / "bench-peer", "--forge", HERE / "fake_forge", "--python", HERE / "fake_peer",
                   "--results", self.results, *arguments]
        return call(command, env=dict(os.environ, FAKE=json.dumps(fake)))

    def records(self):
        return [json.loads(line) for file in self.results.glob("*.json") for line in file.read_text().splitlines()]

    GPU = {"forge": {"none": 8e6, "master_copies": 8.5e6, "stochastic_rounding": 9e6},
           "peer": {"autocast": 5e6, "master": 5.5e6, "bf16": 6e6}, "factors": {"none": 0.5, "triton": 1.25}}

    def test_each_way_of_keeping_weights_has_its_equal(self):
        done = self.bench(self.GPU, "llama", "canon_abcd", "--allow-dirty")
        pairs = [(record["case"], record["weights"], record["peer"]["setting"]["precision"])
                 for record in self.records()]
        equals = [("master_copies", "master"), ("stochastic_rounding", "bf16"), ("none", "autocast")]
        self.assertEqual(pairs, [("llama", *pair) for pair in equals] + [("canon_abcd", *pair) for pair in equals])
        llama, abcd = self.records()[2], self.records()[5]
        self.assertEqual(len(llama["forge"]["windows"]), 10)  # of two rounds
        self.assertEqual(len(llama["peer"]["windows"]), 10)
        for side, steady, start in (("forge", 1, 1.5), ("peer", 4, 5)):
            self.assertEqual(llama[side]["peak_memory_bytes"], steady * 2**30)
            self.assertEqual(llama[side]["start_peak_memory_bytes"], start * 2**30)
            self.assertEqual({kind: len(seconds) for kind, seconds in llama[side]["starts"].items()},
                             {"cold": 3, "warm": 3})
            self.assertLess(max(llama[side]["starts"]["cold"]), 60)
        self.assertEqual(llama["deterministic"]["windows"][0], 7.2e6)
        self.assertNotIn("deterministic", self.records()[0])
        self.assertEqual(abcd["peer"]["setting"]["canon_form"], "triton")
        self.assertEqual(abcd["peer"]["windows"][0], 6.25e6)
        self.assertRegex(done.stdout, r"llama none +speed +8,000,000 +5,000,000 +1\.60 +>= 1 +>= 1\.4 +ok")
        self.assertRegex(done.stdout, r"canon_abcd none +speed +8,000,000 +6,250,000 +1\.28 +>= 1\.6 +>= 2\.4 +MISSED")
        self.assertRegex(done.stdout, r"canon_abcd master_copies +against_llama +8,500,000 +8,500,000 +1\.00 ")
        self.assertEqual(done.returncode, 1)

    def test_what_was_tried_of_the_peer_is_kept(self):
        fake = dict(self.GPU, failing_peers=["max-autotune"], factors={"reduce-overhead": 0.9, "none": 0.5})
        self.bench(fake, "canon_abcd", "--weights", "none", "--no-start", "--causal-conv1d", HERE, "--allow-dirty")
        tried = self.records()[0]["tried"]
        self.assertEqual({figures["setting"]["canon_form"] for figures in tried}, {"shift", "triton", "causal-conv1d"})
        self.assertEqual([figures["setting"]["compile"] for figures in tried],
                         ["default"] * 3 + ["reduce-overhead", "none", "max-autotune"])
        self.assertEqual(len(tried[0]["windows"]), 3)
        self.assertIn("no max-autotune here", tried[-1]["failed"])

    def test_a_form_of_canon_that_computes_something_else_is_not_tried(self):
        fake = dict(self.GPU, wrong_forms=["causal-conv1d"], factors={"causal-conv1d": 2})
        self.bench(fake, "canon_abcd", "--weights", "none", "--no-start", "--causal-conv1d", HERE, "--allow-dirty")
        self.assertNotEqual(self.records()[0]["peer"]["setting"]["canon_form"], "causal-conv1d")
        self.assertEqual(self.records()[0]["tried"][-1]["failed"], "differs: ['much']")

    def test_a_setting_that_takes_too_long_leaves_the_others(self):
        self.bench(dict(self.GPU, endless_peer="max-autotune"), "llama", "--weights", "none", "--no-start",
                   "--autotune-limit", "1", "--allow-dirty")
        self.assertEqual(self.records()[0]["tried"][-1]["failed"], "not done within 1 s")
        self.bench(self.GPU, "llama", "--weights", "none", "--minutes", "2", "--allow-dirty")
        self.assertIn("too little was left of --minutes", self.records()[1]["tried"][-1]["failed"])

    def test_the_command_line_says_what_a_case_must_reach(self):
        quick = ("--no-store", "--no-start", "--weights", "none")
        self.assertEqual(self.bench(self.GPU, "llama", "--at-least", "llama=1.6", *quick).returncode, 0)
        self.assertEqual(self.bench(self.GPU, "llama", "--at-least", "llama=1.61", *quick).returncode, 1)

    def test_a_way_of_keeping_weights_that_fails_leaves_the_others(self):
        done = self.bench(dict(self.GPU, failing_weights=["stochastic_rounding"]), "llama", "--no-start",
                          "--allow-dirty")
        self.assertEqual([record["weights"] for record in self.records()], ["master_copies", "none"])
        self.assertIn("no stochastic_rounding here", done.stderr)
        everything = ["none", "master_copies", "stochastic_rounding"]
        done = self.bench(dict(self.GPU, failing_weights=everything), "llama", "--no-start", "--allow-dirty")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(self.records()), 2)

    def test_a_record_has_two_rounds(self):
        self.assertEqual(self.bench(self.GPU, "llama", "--rounds", "1").returncode, 2)
        done = self.bench(self.GPU, "llama", "--rounds", "1", "--no-store", "--no-start", "--weights", "none")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_models_that_differ_are_not_compared(self):
        done = self.bench(dict(self.GPU, hidden_size=512), "llama", "--allow-dirty")
        self.assertEqual(done.returncode, 1)
        self.assertIn("forge's hidden_size is 512 and the peer's 256", done.stderr)
        done = self.bench(dict(self.GPU, beta2=0.95), "llama", "--allow-dirty")
        self.assertIn("forge's optimizer is ", done.stderr)
        self.assertEqual(self.records(), [])

    def test_on_a_cpu_both_forms_of_canon_are_tried(self):
        fake = {"forge": {"none": 8000}, "peer": {"": 5000, "shift": 3000, "conv": 4000}}
        self.bench(fake, "--device", "cpu", "llama", "canon_abcd", "--allow-dirty")
        llama, abcd = self.records()
        self.assertEqual((llama["rows"], llama["precision"]), (8, "float32"))
        self.assertEqual(abcd["peer"]["setting"]["canon_form"], "conv")
        self.assertEqual(abcd["forge"]["peak_memory_bytes"], 2**31)  # resident
        self.assertNotIn("deterministic", abcd)
        self.assertEqual({kind: len(seconds) for kind, seconds in abcd["peer"]["starts"].items()}, {"warm": 3})

    def test_a_case_that_is_none_is_a_usage_error(self):
        self.assertEqual(self.bench(self.GPU, "canon_x").returncode, 2)

    def test_the_commands_beside_the_figures_are_ones(self):
        # Records without "weights" are of older revisions of the script.
        stored = [json.loads(line) for file in (SCRIPTS.parent / "benchmarks").glob("peer_*.json")
                  for line in file.read_text().splitlines()]
        for command in {record["command"] for record in stored if "weights" in record}:
            name, *arguments = command.split()
            done = call([SCRIPTS.parent / name, *arguments, "--list"])
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stderr}")

    def test_only_a_revision_that_others_have_is_stored(self):
        sys.path.insert(0, str(SCRIPTS / "peer"))
        from results import is_clean, revision
        self.assertTrue(is_clean("8a72a23"))
        self.assertFalse(is_clean("8a72a23-dirty"))
        self.assertFalse(is_clean(""))
        if not is_clean(revision()):
            done = self.bench(self.GPU, "llama")
            self.assertEqual(done.returncode, 1)
            self.assertIn("commit first", done.stderr)


class BenchGpus(unittest.TestCase):
    FAKE = {"gpus": {"cuda:0": 5e5, "cuda:1": 4e5, "cuda": 7.6e5}, "forge": {}, "peer": {"ddp": 8e5, "fsdp": 5e5}}

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def bench(self, fake, *arguments):
        command = [SCRIPTS / "bench-gpus", "--forge", HERE / "fake_forge", "--python", HERE / "fake_peer",
                   "--results", self.folder, "--allow-dirty", *arguments]
        return call(command, env=dict(os.environ, FAKE=json.dumps(fake)))

    def records(self):
        return [json.loads(line) for line in (self.folder / "gpus.json").read_text().splitlines()]

    def test_several_gpus_stand_beside_the_slowest_one_and_the_peer(self):
        done = self.bench(self.FAKE, "medium:llama", "large:canon_abcd", "--rounds", "2")
        self.assertEqual(done.returncode, 1, done.stderr)  # 1.9 is reached, PyTorch's speed is not
        llama, canon = self.records()
        self.assertEqual(llama["speeds_alone"], {"cuda:0": 5e5, "cuda:1": 4e5})
        self.assertEqual(llama["alone"]["windows"], [4e5] * 10)  # of two rounds
        self.assertEqual(llama["forge"]["windows"], [7.6e5] * 10)
        self.assertEqual(llama["peer"]["setting"]["kind"], "ddp")
        self.assertEqual(canon["peer"]["setting"], {"kind": "fsdp", "canon_form": "triton"})
        self.assertRegex(done.stdout, r"medium:llama +760,000 tokens/s, 8\.0 GiB a GPU, scaling 1\.9 \(must 1\.9\)")
        self.assertIn("gpus_speed 0.95 (must 1, MISSED), hidden 0.8 (must 0.7)", done.stdout)
        page = self.folder / "page.md"
        written = call([SCRIPTS / "write-benchmarks", "--results", self.folder, "--page", page])
        self.assertEqual(written.returncode, 0, written.stderr)
        self.assertIn("2 GPUs | 400.0k | 760.0k | 1.90 | ≥ 1.9 | 800.0k (ddp) | 0.95 | 8.00 GiB | 16.00 GiB | 10.0 ms, 80 % |",
                      page.read_text())

    def test_without_the_peer_forge_stands_alone(self):
        done = self.bench(self.FAKE, "medium:llama", "--no-peer")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIsNone(self.records()[0]["peer"])

    def test_a_case_that_fails_leaves_the_others(self):
        done = self.bench(dict(self.FAKE, failing_devices=["cuda:1"]), "medium:llama", "--no-peer")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no cuda:1 here", done.stderr)
        self.assertIn("medium:llama: forge could not be measured", done.stdout)
        self.assertEqual(self.bench(self.FAKE, "small:llama").returncode, 2)
        self.assertEqual(self.bench(self.FAKE, "--gpus", "3").returncode, 2)


class WriteBenchmarks(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def write(self, *arguments):
        return call([SCRIPTS / "write-benchmarks", "--results", self.folder, "--page", self.folder / "page.md",
                     "--targets", HERE / "targets.json", *arguments])

    def test_a_page_that_is_out_of_date_is_shown_with_its_difference(self):
        lines = (HERE / "benchmarks" / "peer_cuda_tiny.json").read_text().splitlines(True)
        (self.folder / "peer.json").write_text(lines[0])
        self.assertEqual(self.write().returncode, 0)
        self.assertEqual(self.write("--check").returncode, 0)
        (self.folder / "peer.json").write_text("".join(lines))
        done = self.write("--check")
        self.assertEqual(done.returncode, 1)
        self.assertIn("+| Llama 4.4M, 32 × 512, bfloat16 | 8.00M", done.stdout)

    def test_without_figures_there_is_no_page(self):
        self.assertEqual(self.write().returncode, 0)
        self.assertFalse((self.folder / "page.md").exists())

    def test_a_damaged_file_is_named(self):
        (self.folder / "peer.json").write_text("{\n")
        done = self.write()
        self.assertEqual(done.returncode, 1)
        self.assertIn("peer.json", done.stderr)


class PyTorchWorker(unittest.TestCase):
    def end_of(self, save):
        """The worker's exit status and message where a job of these lines fails; it may write files
        of a thousand bytes."""
        program = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
import worker
def save(*_):
{textwrap.indent(textwrap.dedent(save), "    ")}
worker.serve = save
sys.exit(worker.main())
"""
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(
                [sys.executable, "-B", "-c", program, f"{folder}/weights"],
                cwd=Path(__file__).resolve().parents[2] / "backends/pytorch",
                capture_output=True, text=True)
        event = json.loads(done.stdout)
        self.assertEqual(event["event"], "failed")
        return done.returncode, event["message"]

    def test_a_file_beyond_its_limit_is_told_and_is_the_storage_s_fault(self):
        status, message = self.end_of("""
            with open(sys.argv[1], "wb") as file:
                file.write(bytes(100_000))
            """)
        self.assertIn("File too large", message)
        self.assertEqual(status, 4)

    def test_a_full_disk_that_a_library_wrapped_is_the_storage_s_fault(self):
        write = """
            try:
                with open(sys.argv[1], "wb") as file:
                    file.write(bytes(100_000))
            except OSError as problem:
                raise RuntimeError("unexpected pos 64 vs 0")"""
        for wrapped in ("", " from problem"):
            status, message = self.end_of(write + wrapped)
            self.assertIn("unexpected pos", message)
            self.assertEqual(status, 4)
        self.assertEqual(self.end_of(write + " from None")[0], 1)


class BuildCuda(unittest.TestCase):
    def test_a_dry_run_prints_the_commands(self):
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "a_1.0_amd64.deb").write_text("")
            done = call([SCRIPTS / "build-cuda", "--dry-run", "--debs", folder, "--architectures", "80,90a",
                         "--build", folder + "/build", "--torch", "/somewhere/torch"])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a_1.0_amd64.deb", done.stdout)
        self.assertIn("TORCH_CUDA_ARCH_LIST=8.0\\ 9.0a", done.stdout)
        self.assertIn("-DCMAKE_CUDA_ARCHITECTURES=80\\;90a", done.stdout)
        self.assertIn(f"cmake --build {folder}/build", done.stdout)
        self.assertIn(f"export LD_LIBRARY_PATH={folder}/build/prefix/usr/lib/", done.stdout)

    def test_wrong_arguments_are_usage_errors(self):
        for arguments in (["--architectures", "hopper"], ["--debs", "/no/such/folder"], ["--bulid", "x"], ["--build"]):
            self.assertEqual(call([SCRIPTS / "build-cuda", *arguments]).returncode, 2, arguments)

    def test_every_script_has_help(self):
        for name in ("build-cuda", "fetch-deps", "test-gpu", "bench-peer", "bench-gpus", "write-benchmarks"):
            done = call([SCRIPTS / name, "--help"])
            self.assertEqual(done.returncode, 0, name)
            self.assertIn(f"scripts/{name}", done.stdout)


if __name__ == "__main__":
    unittest.main()
