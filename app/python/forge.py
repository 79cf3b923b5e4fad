"""forge in Python: start runs, wait for them, and read their results, in a notebook or a script.

    import forge

    forge.run("train_llama", "train_canon_ac", seeds=3, overrides={"train.max_steps": 100})
    forge.runs(where=["status=completed", "eval_loss<2"]).frame()      # a pandas.DataFrame
    forge.curves("train_canon_ac-17ec5a25ee2c", metric="train_loss")
    forge.table("positions").rows.frame()

Everything goes through the program `forge` and its JSON, so numbers are those that it prints, and runs
are found as it finds them: in the workspace of the current folder (or of `folder=`). The module needs
nothing but Python 3.8; pandas only for `Rows.frame()`.

The program is the one that FORGE_PROGRAM names, else the one that this file is installed with, else that
of the build in this clone, else `forge` on the PATH.
"""
import csv
import html
import io
import json
import os
import shutil
import subprocess
import time
import warnings
from pathlib import Path

__all__ = ["ForgeError", "Rows", "Table", "curves", "program", "run", "runs", "table", "wait"]

#: States of a run that goes on by itself, or waits for a device.
ACTIVE = ("queued", "running")
#: Seconds between two looks at runs that are waited for.
POLL_SECONDS = 1.0


class ForgeError(Exception):
    """forge refused a command, or a run failed. `exit_code` is the program's (docs/ARCHITECTURE.md)."""

    def __init__(self, message, exit_code=1):
        super().__init__(message)
        self.exit_code = exit_code


class Rows(list):
    """A list of dicts with the same keys, which a notebook shows as a table."""

    def frame(self):
        """As a pandas.DataFrame. Throws ImportError without pandas."""
        import pandas  # here, because nothing else needs it

        return pandas.DataFrame(list(self))

    def column(self, name):
        """The values of one key, in the order of the rows. Throws KeyError."""
        return [row[name] for row in self]

    def _repr_html_(self):
        names = list(self[0]) if self else []
        head = "".join(f"<th>{html.escape(str(name))}</th>" for name in names)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(_shown(row[name]))}</td>" for name in names) + "</tr>"
                       for row in self)
        return f"<table><tr>{head}</tr>{body}</table>"


class Table:
    """A table of a project, as `forge compare --json` prints it (docs/TABLES.md).

    `rows` has a dict for each row: config, name, status, its metrics, `runs` (each seed's values) and
    `statistics` (mean, interval, p). `claims` has each claim with its verdict, `setup` what holds for all
    rows, `left_out` the runs that are not in the table, with the reasons.
    """

    def __init__(self, content):
        self.name = content["table"]
        self.title = content["title"]
        self.setup = content.get("setup", {})
        self.rows = Rows(content["rows"])
        self.claims = Rows(content.get("claims", ()))
        self.left_out = content.get("left_out", [])

    def seeds(self):
        """A row for each run of the table: config, name, run_id, seed and the metrics shown."""
        return Rows({"config": row["config"], "name": row["name"], **each} for row in self.rows for each in row["runs"])


def program():
    """The path of the program `forge`. Throws ForgeError where there is none."""
    named = os.environ.get("FORGE_PROGRAM")
    if named:
        return os.path.abspath(named) if os.sep in named else named
    here = Path(__file__).resolve().parent
    is_installed = here.parts[-3:] == ("share", "forge", "python")
    folder = here.parents[2] / "bin" if is_installed else here.parents[1] / "build" / "release"
    if os.access(folder / "forge", os.X_OK):
        return str(folder / "forge")
    found = shutil.which("forge")
    if not found:
        raise ForgeError("there is no program 'forge': name it in FORGE_PROGRAM, or put it on the PATH")
    return found


def runs(*names, where=(), sort=None, limit=None, archived=False, folder=None):
    """Runs, newest first: `Rows` with every column that `forge runs --help` lists.

    names: ids, prefixes or patterns; without any all runs of the workspace
    where: a condition as of `forge runs --where`, or a list of them: "eval_loss<2", "optimizer.lr=0.001"
    sort: a column or config key; with '-' before it, descending
    """
    words = ["runs", "--json", *_names(names)]
    for condition in [where] if isinstance(where, str) else where:
        words += ["--where", condition]
    words += ["--sort", sort] if sort else []
    words += ["--limit", str(limit)] if limit is not None else []
    words += ["--archived"] if archived else []
    return Rows(_json(words, folder))


USUAL_METRICS = ("train_loss", "eval_loss", "validation_loss", "learning_rate", "gradient_norm", "tokens_per_second")


def curves(*names, metric=None, folder=None):
    """What runs reported while they trained: `Rows` of run_id, config, seed, step, tokens, wall_seconds,
    timestamp_ms, metric and value. metric: "train_loss", "eval_loss", "learning_rate", … alone."""
    text = _call(["export", "--format", "metrics-csv", *_names(names)], folder)
    number = {"seed": int, "step": int, "tokens": int, "wall_seconds": float, "timestamp_ms": int, "value": float}
    points = list(csv.DictReader(io.StringIO(text)))
    known = sorted({row["metric"] for row in points})
    if points and metric not in (None, *known, *USUAL_METRICS):  # an evaluation may be still to come
        raise ForgeError(f"no run reported '{metric}': there are {', '.join(known)}")
    return Rows({name: number.get(name, str)(text) if text else None for name, text in row.items()}
                for row in points if metric in (None, row["metric"]))


def table(name, profile=None, where=(), folder=None):
    """A table of the project of the current folder, as a `Table`."""
    words = ["compare", "--table", *_names([name]), "--json"]
    words += ["--profile", profile] if profile else []
    for condition in [where] if isinstance(where, str) else where:
        words += ["--where", condition]
    return Table(_json(words, folder))


def run(*configs, overrides=None, seeds=None, project=None, device=None, threads=None, options=(), until_done=True,
        progress=None, folder=None):
    """Trains configs; a run that is completed already is not repeated. Returns its runs as `runs` does.

    overrides: config keys with their values, {"optimizer.lr": 3e-4}: numbers, texts, paths, lists, dicts, None
    seeds: their number, or a list of them
    options: further words of `forge run`, such as ["--sweep", "optimizer.lr=1e-3,3e-3"]; with one that only
        plans, "--dry-run", "--probe" or "--save-plan", the plan's rows are returned
    until_done: wait; else the runs are queued, and `wait` waits for them
    progress: called with the runs after each look; `print_progress` prints a line a run
    Throws ForgeError for a wrong config, and for a run that fails.
    """
    words = ["run", *_names(configs), "--detach", "--json"]
    for key, value in (overrides or {}).items():
        words += ["--set", _setting(key, value)]
    if isinstance(seeds, int):
        words += ["--seeds", str(seeds)]
    elif seeds is not None:
        listed = ",".join(str(seed) for seed in seeds)
        if not listed:
            raise ForgeError("seeds has no seed: give some, their number, or None for the config's own", 2)
        words += ["--seed", listed]
    for option, value in (("--project", project), ("--device", device), ("--threads", threads)):
        words += [option, str(value)] if value is not None else []
    answer = _json([*words, *options], folder)
    if any("judged_by" in entry for entry in answer):  # a plan's
        return Rows(answer)
    planned = [entry["run"] for entry in answer]
    return wait(planned, progress=progress, folder=folder) if until_done else _in_order(planned, folder)


def wait(names, timeout=None, progress=None, folder=None):
    """Waits until none of the runs is queued or running, and returns them as `runs` does.

    timeout: seconds; then TimeoutError, and the runs go on
    Throws ForgeError where one failed. A stopped run is returned as it is. Warns where nothing starts queued runs.
    """
    names = [names] if isinstance(names, str) else [entry if isinstance(entry, str) else entry["id"] for entry in names]
    deadline = None if timeout is None else time.monotonic() + timeout
    while True:
        found = _in_order(names, folder)
        if progress:
            progress(found)
        if not any(entry["status"] in ACTIVE for entry in found):
            break
        if deadline is not None and time.monotonic() >= deadline:
            raise TimeoutError(f"{sum(entry['status'] in ACTIVE for entry in found)} of {len(found)} runs go on")
        if not any(entry["status"] == "running" for entry in found):
            unserved = _json(["status", "--json"], folder)["unserved"]
            if unserved:
                warnings.warn(f"no process serves the queue; 'forge runs resume {unserved} --detach' does")
        time.sleep(POLL_SECONDS)
    failed = [f"{entry['id']}: {entry['failure_reason']}" for entry in found if entry["status"] == "failed"]
    if failed:
        raise ForgeError("\n".join(failed))
    return found


def print_progress(found):
    """A line a run, for `progress=` of `run` and `wait`."""
    for entry in found:
        loss = "" if entry["train_loss"] is None else f"  loss {entry['train_loss']:.4f}"
        print(f"{entry['config']} (seed {entry['seed']})  {entry['status']}  "
              f"step {entry['step']}/{entry['max_steps']}{loss}", flush=True)


def _setting(key, value):
    """What --set takes: JSON is YAML."""
    if "=" in str(key):
        raise ForgeError(f"'{key}' is no config key: a key has no '='", 2)
    try:
        return f"{key}={json.dumps(value, ensure_ascii=False, default=os.fspath)}"
    except (TypeError, ValueError) as problem:
        raise ForgeError(f"{key} cannot be set to {value!r}: numbers, texts, paths, lists, dicts and None can", 2) \
            from problem


def _names(names):
    """The names, lists of them too. None may be an option of the program: `options=` has these."""
    names = [each for name in names for each in (name if isinstance(name, (list, tuple)) else [name])]
    for name in names:
        if str(name).startswith("-"):
            raise ForgeError(f"'{name}' is an option and no name: run(options=[...]) takes options", 2)
    return names


def _in_order(names, folder):
    """The runs of these ids or of what they begin with, once each, in this order."""
    names = list(dict.fromkeys(names))
    if not names:
        return Rows()
    found = {entry["id"]: entry for entry in runs(*names, archived=True, folder=folder)}
    ids = {}
    for name in names:
        meant = [name] if name in found else [each for each in found if each.startswith(name)]
        if not meant:
            raise ForgeError(f"no run has the id {name}: was it removed?")
        ids.update(dict.fromkeys(meant))
    return Rows(found[each] for each in ids)


def _shown(value):
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _json(words, folder):
    text = _call(words, folder)
    try:
        return json.loads(text)
    except json.JSONDecodeError as problem:  # a word such as "--help" was no name, but an option
        raise ForgeError(f"'forge {' '.join(map(str, words))}' answered {text.strip()[:60]!r}, not JSON") from problem


def _call(words, folder):
    try:
        done = subprocess.run([program(), *map(str, words)], cwd=folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8",
                              errors="replace", check=False)
    except (OSError, ValueError) as problem:  # no such program or folder; a word that is no text
        raise ForgeError(f"'{program()}' could not be started: {problem}") from problem
    if done.returncode != 0:
        raise ForgeError(done.stderr.strip() or f"forge ended with exit code {done.returncode}", done.returncode)
    return done.stdout
