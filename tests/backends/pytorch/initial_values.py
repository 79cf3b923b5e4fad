"""Initial values as the Python worker draws them: weights and a seed as JSON on stdin, float32 values on
stdout, exact as doubles."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../backends/pytorch"))
from numbers_by_counter import draw_initial  # noqa: E402

request = json.load(sys.stdin)
json.dump([draw_initial(weight, request["seed"]).astype(float).flatten().tolist()
           for weight in request["weights"]], sys.stdout)
