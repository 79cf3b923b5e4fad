"""What scipy says of samples: the original's side for core/statistics.

Moments are exact (fractions), so that samples which all but cancel are judged too; where nothing
cancels, scipy's own tests of the whole samples have to agree. Quantiles of Student's t come from
scipy.special.betaincinv: scipy.stats.t.ppf is off by up to 2e-9 before scipy 1.12.
"""

import math
from fractions import Fraction

import numpy
from scipy import integrate, special, stats

RESAMPLES = 2000
MASK = 0xFFFFFFFF


def close(a, b, tolerance=1e-10):
    return a == b or abs(a - b) <= tolerance * max(abs(a), abs(b))


def exact_moments(values):
    """Mean, standard deviation (n - 1), rounded once."""
    exact = [Fraction(value) for value in values]
    mean = sum(exact) / len(exact)
    deviations = [value - mean for value in exact]
    unit = max(abs(deviation) for deviation in deviations)
    if unit == 0 or len(values) == 1:
        return mean, 0.0
    squares = sum((deviation / unit) ** 2 for deviation in deviations)
    return mean, float(unit) * math.sqrt(squares / (len(values) - 1))


def well_conditioned(*samples):
    for values in samples:
        spread = exact_moments(values)[1]
        largest = max(abs(value) for value in values)
        if spread == 0 or not 1e-100 < spread < 1e100 or largest / spread > 1e3:
            return False
    return True


def reach(confidence, degrees):
    """The t of a two-sided interval."""
    beta = special.betaincinv(degrees / 2, 0.5, 1 - confidence)
    if beta < 1e-3:
        result = math.sqrt(degrees * (1 / beta - 1))
    else:  # the complement keeps the digits that 1 / beta - 1 would lose
        result = math.sqrt(degrees * special.betaincinv(0.5, degrees / 2, confidence) / beta)
    assert close(result, stats.t.ppf((1 + confidence) / 2, degrees), 1e-7), (confidence, degrees)
    return result


def two_sided_p(t, degrees):
    # Near 1 scipy's stdtr has but half of its digits: it goes by 1 / (1 + t * t).
    if abs(t) < 1:
        return 1 - special.betainc(0.5, degrees / 2, t * t / (degrees + t * t))
    return 2 * special.stdtr(degrees, -abs(t))


def correction(degrees):
    """Hedges' c(m) = gamma(m/2) / (sqrt(m/2) gamma((m-1)/2))."""
    return special.poch((degrees - 1) / 2, 0.5) / math.sqrt(degrees / 2)


def answer_of(difference, error, degrees, confidence):
    if error == 0:
        return None  # nothing says how far chance moves it
    t = difference / error
    p = two_sided_p(t, degrees)
    low = difference - reach(confidence, degrees) * error
    high = difference + reach(confidence, degrees) * error
    return {"difference": difference, "standard_error": error, "degrees_of_freedom": degrees,
            "t": t if math.isfinite(t) else None, "p": p, "low": low, "high": high,
            "effect_size": None}


def summary(values, confidence):
    mean, deviation = exact_moments(values)
    n = len(values)
    answer = {"n": n, "mean": float(mean)}
    if n == 1:
        return answer
    error = deviation / math.sqrt(n)
    answer |= {"standard_deviation": deviation, "standard_error": error}
    if well_conditioned(values):
        assert close(deviation, numpy.std(values, ddof=1))
        assert close(error, stats.sem(values))
    if n < 20:
        width = reach(confidence, n - 1) * error if error else 0.0
        answer |= {"low": float(mean) - width, "high": float(mean) + width}
    return answer


def welch(own, baseline, confidence):
    if min(len(own), len(baseline)) < 2:
        return None
    (mean_a, a), (mean_b, b) = exact_moments(own), exact_moments(baseline)
    n_a, n_b = len(own), len(baseline)
    difference = float(mean_a - mean_b)
    unit = max(a, b)
    # Unequal sizes: the degrees of freedom of the smaller sample (Mickey and Brown 1966).
    smaller = min(n_a, n_b) - 1
    if unit == 0:
        return None
    share_a, share_b = (a / unit) ** 2 / n_a, (b / unit) ** 2 / n_b
    error = unit * math.sqrt(share_a + share_b)
    degrees = (share_a + share_b) ** 2 / (share_a**2 / (n_a - 1) + share_b**2 / (n_b - 1))
    if n_a != n_b:
        assert degrees >= smaller * (1 - 1e-12)
        degrees = smaller
    answer = answer_of(difference, error, degrees, confidence)
    if well_conditioned(own, baseline):
        scipys = stats.ttest_ind(own, baseline, equal_var=False)
        assert close(answer["t"], scipys.statistic, 1e-9) or abs(answer["t"]) < 1e-3
        if n_a == n_b:
            assert close(answer["p"], scipys.pvalue, 1e-7), (answer, scipys)
    pooled = unit * math.sqrt(
        ((n_a - 1) * (a / unit) ** 2 + (n_b - 1) * (b / unit) ** 2) / (n_a + n_b - 2))
    answer["effect_size"] = difference / pooled * correction(n_a + n_b - 2)
    return answer


def paired(own, baseline, confidence):
    n = len(own)
    if n < 2:
        return None
    # As a program has them, and ttest_rel: the differences are doubles.
    differences = [a - b for a, b in zip(own, baseline)]
    mean, deviation = exact_moments(differences)
    answer = answer_of(float(mean), deviation / math.sqrt(n), n - 1, confidence)
    if answer is None:
        return None
    if well_conditioned(differences):
        scipys = stats.ttest_rel(own, baseline)
        assert close(answer["t"], scipys.statistic, 1e-9) or abs(answer["t"]) < 1e-3
        assert close(answer["p"], scipys.pvalue, 1e-7)
        interval = scipys.confidence_interval(confidence)
        scale = max(abs(interval.low), abs(interval.high))
        assert abs(answer["low"] - interval.low) < 1e-7 * scale
        assert abs(answer["high"] - interval.high) < 1e-7 * scale
    (mean_a, a), (mean_b, b) = exact_moments(own), exact_moments(baseline)
    unit = max(a, b)
    if unit == 0 or n == 2:  # two pairs always have |r| = 1
        return answer
    r = 0.0
    if a > 0 and b > 0:
        products = sum((Fraction(x) - mean_a) * (Fraction(y) - mean_b)
                       for x, y in zip(own, baseline))
        r = float(products / (Fraction(a) * Fraction(b))) / (n - 1)
    adjusted = max(0.0, 1 - (1 - min(1.0, r * r)) * (n - 1) / (n - 2))
    degrees = 2 * (n - 1) / (1 + adjusted)
    standardiser = unit * math.sqrt(((a / unit) ** 2 + (b / unit) ** 2) / 2)
    answer["effect_size"] = float(mean) / standardiser * correction(degrees)
    return answer


def holm(p):
    """Independent of step-down bookkeeping: the largest of what the closed tests below ask."""
    tested = [value for value in p if value is not None]
    adjusted = []
    for value in p:
        if value is None:
            adjusted.append(None)
            continue
        asked = [min(1.0, other * sum(1 for third in tested if third >= other))
                 for other in tested if other <= value]
        adjusted.append(max(asked))
    return adjusted


def philox(blocks, stream, key):
    """Philox4x32-10 of the counters (block, stream), as rows of four words."""
    blocks = numpy.arange(blocks, dtype=numpy.uint64)
    zeros = numpy.zeros_like(blocks)
    c = [blocks & MASK, blocks >> numpy.uint64(32), zeros + (stream & MASK), zeros + (stream >> 32)]
    key0, key1 = key & MASK, key >> 32
    for _ in range(10):
        product0 = numpy.uint64(0xD2511F53) * c[0]
        product1 = numpy.uint64(0xCD9E8D57) * c[2]
        c = [(product1 >> numpy.uint64(32)) ^ c[1] ^ numpy.uint64(key0), product1 & numpy.uint64(MASK),
             (product0 >> numpy.uint64(32)) ^ c[3] ^ numpy.uint64(key1), product0 & numpy.uint64(MASK)]
        key0, key1 = (key0 + 0x9E3779B9) & MASK, (key1 + 0xBB67AE85) & MASK
    return numpy.stack(c, axis=1).reshape(-1)


def stream_number(name):
    number = 0xCBF29CE484222325
    for letter in name.encode():
        number = ((number ^ letter) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return number


def bootstrap(values, seed, confidence):
    """BCa as scipy.stats.bootstrap has it, on forge's resamples, with expanded percentiles."""
    n = len(values)
    mean, deviation = exact_moments(values)
    if deviation == 0:
        return {"low": float(mean), "high": float(mean)}
    wanted = RESAMPLES * n
    words = philox(wanted // 8 + 64, stream_number("bootstrap"), seed)
    halves = numpy.stack([words & numpy.uint64(0xFFFF), words >> numpy.uint64(16)], axis=1)
    products = halves.reshape(-1) * numpy.uint64(n)
    words = products[(products & numpy.uint64(0xFFFF)) >= 2**16 % n] >> numpy.uint64(16)
    indices = words[:wanted].astype(int).reshape(RESAMPLES, n)
    centred = numpy.array([float(Fraction(value) - mean) for value in values])
    means = centred[indices].mean(axis=1)

    equal = numpy.abs(means) <= 1e-12 * deviation
    below = (means < 0) & ~equal
    share = (below.sum() + equal.sum() / 2) / RESAMPLES
    z0 = special.ndtri(share)
    jackknife = numpy.array([numpy.delete(centred, i).mean() for i in range(n)])
    influence = (n - 1) * (jackknife.mean() - jackknife)
    influence /= numpy.abs(influence).max()
    a = (influence**3).sum() / (6 * (influence**2).sum() ** 1.5)
    ends = []
    expanded = math.sqrt(n / (n - 1)) * reach(confidence, n - 1)
    for z in (-expanded, expanded):
        shifted = z0 + z
        scale = 1 - a * shifted
        share = special.ndtr(z0 + shifted / scale) if scale > 0 else float(z > 0)
        ends.append(float(mean) + numpy.percentile(means, 100 * share))
    return {"low": ends[0], "high": ends[1]}


def welch_power(n, effect, level):
    """Share of pairs of normal samples of n each, a multiple `effect` of their standard deviation
    apart, that Welch's test tells apart at that level. With equal sizes t is that of the pooled
    test, a noncentral t of 2(n-1) degrees of freedom, whatever share of the variance is whose; the
    share, a beta variable, decides on the degrees of freedom that it is judged by."""
    v = n - 1
    centre = effect * math.sqrt(n / 2)

    def judged(share):
        degrees = v / (share**2 + (1 - share) ** 2)
        limit = reach(1 - level, degrees)
        found = (stats.nct.sf(limit, 2 * v, centre) + stats.nct.cdf(-limit, 2 * v, centre)
                 if effect else 2 * special.stdtr(2 * v, -limit))
        return found * stats.beta.pdf(share, v / 2, v / 2)

    return 2 * integrate.quad(judged, 0, 0.5)[0]


def paired_power(n, effect, level):
    """The same for differences of pairs, `effect` in their standard deviations."""
    limit = reach(1 - level, n - 1)
    centre = effect * math.sqrt(n)
    return stats.nct.sf(limit, n - 1, centre) + stats.nct.cdf(-limit, n - 1, centre)


def answer(case):
    kind = case["kind"]
    if kind == "summary":
        return summary(case["values"], case["confidence"])
    if kind == "welch":
        return welch(case["own"], case["baseline"], case["confidence"])
    if kind == "paired":
        return paired(case["own"], case["baseline"], case["confidence"])
    if kind == "holm":
        return {"adjusted": holm(case["p"])}
    return bootstrap(case["values"], case["seed"], case["confidence"])
