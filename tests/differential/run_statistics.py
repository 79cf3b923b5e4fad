#!/usr/bin/env python3
"""Compares core/statistics with scipy on random and awkward samples.

    tests/differential/run_statistics.py --program build/release/forge_differential
    … --count 20000 --seed 7                                   more random cases, others
    tests/differential/run_statistics.py --record tests/vectors/statistics.json
                                                               writes cases with scipy's answers

The environment variable FORGE_TEST_SEED gives another default seed.
"""

import argparse
import json
import os
import random
import sys

try:
    import scipy
    import statistics_oracle as oracle
except ImportError as missing:
    print(f"skipped, {missing}: `scripts/setup --tests` installs Debian's python3-scipy")
    sys.exit(77)

from program import Program

CONFIDENCES = (0.5, 0.8, 0.9, 0.95, 0.95, 0.95, 0.99, 0.999)


def sample(generator, n):
    """Values as runs give them, and as nobody wishes for."""
    kind = generator.choice(["losses", "losses", "shares", "speeds", "skewed", "ties", "constant",
                             "offset", "tiny", "huge", "mixed"])
    if kind == "losses":
        centre, spread = generator.uniform(0.5, 8), 10 ** generator.uniform(-4, -0.5)
        return [generator.gauss(centre, spread) for _ in range(n)]
    if kind == "shares":
        return [generator.randint(0, 500) / 500 for _ in range(n)]
    if kind == "speeds":
        return [generator.gauss(43_000, 900) for _ in range(n)]
    if kind == "skewed":
        return [generator.lognormvariate(0, 1.5) for _ in range(n)]
    if kind == "ties":
        return [float(generator.randint(0, 2)) for _ in range(n)]
    if kind == "constant":
        return [generator.choice([0.1, 3.7, -2.0, 0.0])] * n
    if kind == "offset":
        return [1e6 + generator.gauss(0, 1e-3) for _ in range(n)]
    if kind == "tiny":
        return [generator.gauss(1, 1) * 1e-200 for _ in range(n)]
    if kind == "huge":
        return [generator.gauss(1, 1) * 1e200 for _ in range(n)]
    return [generator.gauss(0, 1) * 10 ** generator.uniform(-6, 6) for _ in range(n)]


def two_samples(generator, n, m):
    own, baseline = sample(generator, n), sample(generator, m)
    how = generator.random()
    if how < 0.5:  # alike, as rows of a table are
        baseline = [value + generator.choice([0, 0, 0.001, 0.1]) for value in sample(generator, m)]
        own = [generator.choice(baseline) + generator.gauss(0, 0.1) for _ in range(n)]
    elif how < 0.6 and n == m:
        own = list(baseline)
    return own, baseline


def size(generator):
    return generator.choice([1, 2, 2, 3, 3, 3, 4, 5, 5, 8, 10, 10, 17, 19, 20, 33])


def random_case(generator):
    kind = generator.choice(["summary", "welch", "welch", "paired", "paired", "holm", "bootstrap"])
    confidence = generator.choice(CONFIDENCES)
    if kind == "summary":
        return {"kind": kind, "values": sample(generator, size(generator)), "confidence": confidence}
    if kind == "welch":
        own, baseline = two_samples(generator, size(generator), size(generator))
        return {"kind": kind, "own": own, "baseline": baseline, "confidence": confidence}
    if kind == "paired":
        n = size(generator)
        own, baseline = two_samples(generator, n, n)
        if generator.random() < 0.5:  # noise that both of a pair have
            shared = [generator.gauss(0, 0.3) for _ in range(n)]
            own = [a + s for a, s in zip(own, shared)]
            baseline = [b + s for b, s in zip(baseline, shared)]
        return {"kind": kind, "own": own, "baseline": baseline, "confidence": confidence}
    if kind == "holm":
        p = [generator.choice([generator.random(), generator.random() ** 8, 0.01, 0.04, 0.0, 1.0,
                               None]) for _ in range(generator.randint(0, 12))]
        return {"kind": kind, "p": p}
    n = generator.choice([20, 20, 21, 30, 64, 2, 5])
    return {"kind": kind, "values": sample(generator, n), "confidence": confidence,
            "seed": generator.getrandbits(64)}


def random_cases(seed, count):
    for index in range(count):
        yield f"{seed}/{index}", random_case(random.Random(f"{seed}/{index}"))


def differs(case, expected, actual):
    """The first figure that is further off than 1e-10, or ""."""
    if expected is None or actual is None:
        return "" if expected is actual else f"expected {expected}, got {actual}"
    scale = max((abs(value) for key in ("values", "own", "baseline") for value in case.get(key, [])),
                default=0)
    for key, wanted in expected.items():
        pairs = (zip(wanted, actual[key]) if isinstance(wanted, list) else [(wanted, actual.get(key))])
        for a, b in pairs:
            if a is None or b is None:
                if a is not b:
                    return f"{key}: expected {a}, got {b}"
                continue
            # Places are as exact as the values that they lie among, all else is exact by itself.
            place = key in ("mean", "low", "high", "difference")
            allowed = 1e-10 * abs(a) + (1e-15 * scale if place else 1e-300)
            if not abs(a - b) <= allowed and not cancelled(case, key, a, b, expected):
                return f"{key}: expected {a!r}, got {b!r}"
    return ""


def cancelled(case, key, a, b, expected):
    """What follows from a difference has no more digits than the means leave it: of 1e6 and 1e6 +
    1e-3 only seven are left."""
    if key not in ("t", "p", "effect_size") or not expected.get("standard_error"):
        return False
    scale = max(abs(value) for value in case["own"] + case["baseline"])
    error = 1e-15 * scale / expected["standard_error"]  # of t
    if key == "p":
        t, degrees = abs(expected["t"]), expected["degrees_of_freedom"]
        return abs(a - b) <= (1e-10 + error * degrees) * a + error and t < 1e8
    return abs(a - b) <= error * (1 if key == "t" else 10)


def record(path, seed, count):
    cases = []
    for _, case in random_cases(seed, count):
        if len(case.get("values", [])) <= 33:
            cases.append({**case, "expected": oracle.answer(case)})
    power = [{"n": n, "effect": effect, "level": level,
              "welch": oracle.welch_power(n, effect, level),
              "paired": float(oracle.paired_power(n, effect, level))}
             for n in (3, 5, 10) for effect in (0, 2) for level in (0.05, 0.05 / 8)]
    with open(path, "w", encoding="utf-8") as file:
        file.write('{"origin": "scipy ' + scipy.__version__ + ', seed ' + str(seed) + '",\n')
        file.write('"power": [\n' + ",\n".join(json.dumps(row) for row in power) + '],\n')
        file.write('"cases": [\n' + ",\n".join(json.dumps(case) for case in cases) + "]}\n")
    print(f"{len(cases)} cases")


def compare(path, seed, count):
    print(f"scipy {scipy.__version__}, {count} random cases, seed {seed}", flush=True)
    failures = 0
    with Program(path) as program:
        for name, case in random_cases(seed, count):
            found = program.ask({**case, "kind": "statistics", "what": case["kind"]})
            if "error" in found or "crash" in found:
                what = json.dumps(found)
            else:
                what = differs(case, oracle.answer(case), found["answer"])
            if what:
                failures += 1
                print(f"\n=== {name}\n{json.dumps(case)}\n{what}", flush=True)
                if failures == 20:
                    break
    print(f"{failures} cases differ")
    return 1 if failures else 0


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", help="forge_differential")
    parser.add_argument("--record", help="file of cases with scipy's answers to write")
    parser.add_argument("--seed", default=os.environ.get("FORGE_TEST_SEED", "1"))
    parser.add_argument("--count", type=int, default=400, help="random cases (default 400)")
    options = parser.parse_args()
    if bool(options.program) == bool(options.record):
        parser.error("either --program or --record")
    if options.record:
        return record(options.record, options.seed, options.count)
    return compare(options.program, options.seed, options.count)


if __name__ == "__main__":
    sys.exit(main())
