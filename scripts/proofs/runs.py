"""Run folders for proofs: made by forge once, copied for each round, and read without forge's help."""
import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
HUNG_AFTER = 8  # seconds in which a worker that its supervisor watches shows nothing
SUSPENDED = 0.1  # of the cases: the supervisor is stopped for longer than that, and goes on

# The smallest model that has every kind of weight: a step takes less than a millisecond.
TINY = {"model.hidden_size": 16, "model.mlp.intermediate_size": 24, "model.num_layers": 1, "model.attention.num_heads": 2,
        "model.vocab_size": 300, "tokenizer.vocab_size": 300, "train.batch_size": 2, "train.seq_len": 16,
        "train.eval_rows": 4, "train.eval_batch_size": 4, "train.log_every": 7, "train.eval_every": 50,
        "train.checkpoint_every": 25, "train.hung_after_seconds": HUNG_AFTER}
TINY_TASK = {"model.hidden_size": 16, "model.mlp.intermediate_size": 32, "model.num_layers": 1, "model.attention.num_heads": 1,
             "train.batch_size": 4, "train.seq_len": 14, "data.task.length": 6, "train.eval_rows": 4,
             "train.log_every": 7, "train.eval_every": 50, "train.checkpoint_every": 25,
             "train.hung_after_seconds": HUNG_AFTER}
KINDS = {  # what is trained: project, config, settings
    "text": ("projects/canon", "train_baseline", TINY),
    "documents": ("projects/canon", "train_baseline", dict(TINY, **{"train.document_mask": "true"})),
    "task": ("projects/playground", "copy/rope_canon_1l_16d", TINY_TASK),
}
COMPLETED, FAILED, STOPPED, STORAGE = 0, 1, 3, 4  # exit codes of `forge supervise`


class Broken(Exception):
    """A proof did not hold."""


def check(condition, message):
    if not condition:
        raise Broken(message)


def wait_for(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        check(time.monotonic() < deadline, f"waited {seconds} s in vain for {what}")
        time.sleep(0.001)
    return value


def send(pid, number):
    """False where there is no such process any more."""
    try:
        os.kill(pid, number)
        return True
    except ProcessLookupError:
        return False


def suspend(pids, while_suspended=lambda: time.sleep(0.01)):
    """Stops the processes, lets them go on after longer than a worker may be silent, and tells whether the first,
    a supervisor, was there all the time."""
    if not all([send(pid, signal.SIGSTOP) for pid in pids]):
        for pid in pids:
            send(pid, signal.SIGCONT)
        return False
    until = time.monotonic() + 1.3 * HUNG_AFTER
    while time.monotonic() < until:
        while_suspended()
    return all([send(pid, signal.SIGCONT) for pid in reversed(pids)])


class Forge:
    """The program under test, with a folder of runs of its own and one of prepared data."""

    root = ROOT  # where it is called from

    def __init__(self, program, folder, cache=None):
        self.program = str(program)
        self.runs = Path(folder, "runs")
        self.cache = Path(cache or Path(folder, "cache"))

    @property
    def environment(self):
        return dict(os.environ, FORGE_RUNS_DIR=str(self.runs), FORGE_CACHE_DIR=str(self.cache), NO_COLOR="1",
                    FORGE_RETRY_WAITS="0,0,0", OMP_WAIT_POLICY="passive")

    def command(self, kind, settings):
        """What a user types."""
        project, config, base = KINDS[kind]
        command = [self.program, "run", config, "-p", project, "--threads", "1", "--json"]
        for key, value in {**base, **settings}.items():
            command += ["--set", f"{key}={value}"]
        return command

    def train(self, kind, settings):
        """Trains to the end in one go and returns the run."""
        done = subprocess.run(self.command(kind, settings), cwd=ROOT, env=self.environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        check(done.returncode == 0, f"forge run ended with {done.returncode}: {done.stderr}")
        return self.run_at(json.loads(done.stdout)[0]["id"])

    def run_at(self, name):
        """The run of that id, whether it is there or not."""
        return Run(self, self.runs / name)

    def launch(self, kind, settings):
        """Starts `forge run` in a process group of its own."""
        return subprocess.Popen(self.command(kind, settings), cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL,
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)

    def supervise(self, run, **options):
        """Starts `forge supervise` in a process group of its own."""
        return subprocess.Popen([self.program, "supervise", str(run.folder)], env=self.environment,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE, text=True, start_new_session=True, **options)


class Run:
    """A run folder."""

    def __init__(self, forge, folder):
        self.forge = forge
        self.folder = Path(folder)
        self.checkpoints_folder = self.folder / "checkpoints"

    def fresh_copy(self, name, forge=None):
        """The same run before it began, among the runs of another forge where one is given."""
        forge = forge or self.forge
        target = forge.runs / name
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for file in ("run.json", "config.json", "config.origin.json", "tokenizer.json"):
            if (self.folder / file).exists():
                shutil.copy(self.folder / file, target)
        request = json.loads((self.folder / "request.json").read_text())
        request["run_dir"] = str(target)
        (target / "request.json").write_text(json.dumps(request) + "\n")
        return Run(forge, target)

    def copy_stopped_at(self, name, step, forge=None):
        """The same run as a crash right after the checkpoint of a step would have left it."""
        copied = self.fresh_copy(name, forge)
        lines = (self.folder / "events.jsonl").read_text().splitlines(keepends=True)
        events = [json.loads(line) for line in lines]
        last = next(i for i, event in enumerate(events) if event["event"] == "checkpoint" and event["step"] == step)
        (copied.folder / "events.jsonl").write_text("".join(lines[:last + 1]))
        for checkpoint in self.checkpoints():
            if int(checkpoint.name) <= step:
                shutil.copytree(checkpoint, copied.checkpoints_folder / checkpoint.name)
        return copied

    def remove(self):
        shutil.rmtree(self.folder)

    def checkpoints(self):
        """Folders under final names, oldest first."""
        if not self.checkpoints_folder.exists():
            return []
        return sorted(entry for entry in self.checkpoints_folder.iterdir() if entry.name.isdigit())

    def unfinished(self):
        """Folders of checkpoints on their way in or out."""
        try:
            return [name for name in os.listdir(self.checkpoints_folder) if name.startswith(".tmp-")]
        except FileNotFoundError:
            return []

    def acknowledged(self):
        """The whole lines of events.jsonl, as bytes."""
        try:
            content = (self.folder / "events.jsonl").read_bytes()
        except FileNotFoundError:
            return b""
        return content[:content.rfind(b"\n") + 1]

    def events(self):
        return [json.loads(line) for line in self.acknowledged().splitlines()]

    def trace(self):
        """Every number that must be the same bits however often a run was interrupted: of two events for one step
        the later attempt's counts."""
        numbers = {}
        for event in self.events():
            if event["event"] == "train":
                numbers["train", event["step"]] = event["loss"], event["gradient_norm"], event["learning_rate"]
            elif event["event"] == "evaluation":
                scores = json.dumps(event.get("scores", {}), sort_keys=True)
                numbers["evaluation", event["step"]] = event["loss"], event["tokens"], scores
        return numbers

    def final_hashes(self):
        """Content hashes of the files of the last checkpoint."""
        manifest = json.loads((self.checkpoints()[-1] / "manifest.json").read_text())["manifest"]
        return {name: entry["hash"] for name, entry in manifest["files"].items()}

    def attempts(self):
        return [event for event in self.events() if event["event"] == "attempt"]

    def is_done(self):
        """Completed, even where the supervisor was killed before it wrote DONE."""
        last = self.events()[-1:]
        ended = last and last[0]["event"] == "ended" and last[0]["status"] == "completed"
        return bool(ended) or (self.folder / "DONE").exists()

    def last_step(self):
        return max((event["step"] for event in self.events() if event["event"] == "train"), default=0)

    def supervise_to_end(self):
        process = self.forge.supervise(self)
        _, prose = process.communicate(timeout=300)
        check(process.returncode == COMPLETED,
              f"{self.folder} ended with {process.returncode}: {prose}{self.events()[-1:]}")

    def end_processes(self, process):
        """Nothing of a proof that broke goes on running."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def same_as(straight, run):
    """Checks that a run has the numbers and the files of the one that nothing disturbed."""
    expected, found = straight.trace(), run.trace()
    for key in sorted(set(expected) | set(found)):
        check(expected.get(key) == found.get(key),
              f"{run.folder}: {key[0]} of step {key[1]} is {found.get(key)} and was {expected.get(key)} undisturbed")
    check(run.final_hashes() == straight.final_hashes(), f"{run.folder}: the last checkpoint has other weights")
