"""Hands the metrics of one run to the client of Weights & Biases.

Reads JSON lines on stdin. The first says what the run is, each further one has a step with its values, and the last one the
status that the run ended with. Prints a line once the client has taken the run. Exit status 3: the package is not installed.
"""
import sys

# Files of the folder that one happens to be in are not Python's packages.
sys.path[:] = [folder for folder in sys.path if folder]

import json
import os

try:
    import wandb
except ImportError as problem:
    print(problem, file=sys.stderr)
    sys.exit(3)

first = json.loads(sys.stdin.readline())
run = wandb.init(
    project=first["project"],
    id=first["id"],
    name=first["name"],
    group=first["group"],
    config=first["config"],
    dir=first["dir"],
    mode=os.environ.get("WANDB_MODE", "offline"),
    resume="allow",
)
print("ready", flush=True)
failed = False
for line in sys.stdin:
    message = json.loads(line)
    if "step" in message:
        run.log({name: float(value) for name, value in message["values"].items()}, step=message["step"])
    else:
        run.summary["status"] = message["status"]
        failed = message["status"] == "failed"
run.finish(exit_code=1 if failed else 0)
