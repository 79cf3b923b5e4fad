#!/usr/bin/env python3
"""Compares forge with Jinja2 and PyYAML: hand-written cases, then random ones.

    tests/differential/run.py --program build/release/forge_differential
    … --count 20000 --seed 7        more random cases, others
    … --only yaml                   one kind: render, expression, lines, split, yaml
    … --keep-going --reduce         all failures, each shrunk to the least that still differs

The environment variable FORGE_TEST_SEED gives another default seed.
"""

import argparse
import json
import os
import random
import sys
import warnings
from collections import Counter

try:
    import jinja2
    import yaml  # noqa: F401
except ImportError as missing:
    sys.exit(f"{missing}: the differential tests need Debian's python3-jinja2 and python3-yaml; "
             "`scripts/setup --tests` installs them")

import cases
from compare import INCOMPARABLE, judge
from grammar import documents, trees
from program import Program
from reduce import reduced

MAKERS = {"render": (trees.tree, 6), "expression": (trees.expression, 6), "lines": (trees.lines, 2),
          "split": (trees.split, 1), "yaml": (documents.document, 5)}


def random_cases(seed, count, only):
    kinds = [only] if only else list(MAKERS)
    weights = [MAKERS[kind][1] for kind in kinds]
    for index in range(count):
        generator = random.Random(f"{seed}/{index}")
        kind = generator.choices(kinds, weights)[0]
        yield f"random {kind} {seed}/{index}", MAKERS[kind][0](generator)


def show(name, case, verdict):
    print(f"\n=== {name}")
    for file, text in case.get("files", {"text": case.get("text")}).items():
        print(f"--- {file}: {text!r}")
    print(f"original: {json.dumps(verdict.expected, ensure_ascii=False)}")
    print(f"forge:    {json.dumps(verdict.actual, ensure_ascii=False)}", flush=True)


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", required=True, help="forge_differential")
    parser.add_argument("--seed", default=os.environ.get("FORGE_TEST_SEED", "1"))
    parser.add_argument("--count", type=int, default=1200, help="random cases (default 1200)")
    parser.add_argument("--only", choices=list(MAKERS), help="random cases of one kind alone")
    parser.add_argument("--keep-going", action="store_true", help="do not stop after 20 failures")
    parser.add_argument("--reduce", action="store_true", help="shrink each failing case")
    parser.add_argument("--save", help="append failing cases to this file, one JSON a line")
    return parser.parse_args()


def main():
    options = arguments()
    warnings.simplefilter("ignore")  # Python's, of code that Jinja compiles
    tally, failures = Counter(), 0
    written = [] if options.only else list(cases.all_cases())
    print(f"jinja2 {jinja2.__version__}, {len(written)} written and {options.count} random cases, "
          f"seed {options.seed}", flush=True)
    with Program(options.program) as program:
        for name, case in [*written, *random_cases(options.seed, options.count, options.only)]:
            verdict = judge(case, program)
            outcome = "rendered" if "error" not in verdict.expected else "refused"
            tally[verdict.kind if verdict.kind == INCOMPARABLE else outcome] += 1
            if not verdict.differs:
                continue
            failures += 1
            if options.reduce:
                case = reduced(case, program)
                verdict = judge(case, program)
            show(name, case, verdict)
            if options.save:
                with open(options.save, "a", encoding="utf-8") as file:
                    file.write(json.dumps(case) + "\n")
            if failures >= 20 and not options.keep_going:
                print("\nstopped after 20 failures")
                break
    print(f"{failures} of {sum(tally.values())} cases differ; {dict(tally)} (by the original)")
    if failures:
        print(f"Run again with --seed {options.seed} --reduce; see tests/differential/README.md.")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
