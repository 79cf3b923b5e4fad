"""Random numbers that are a function of (seed, stream, place): docs/PROTOCOL.md, "Random numbers".

Everything is computed in IEEE doubles in one order, so that the bits are those of every backend.
"""
import math

import numpy as np

MASK = 0xFFFFFFFF


def stream_number(name):
    """FNV-1a of 64 bits."""
    number = 0xCBF29CE484222325
    for byte in name.encode():
        number = ((number ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return number


def philox(counter, key):
    """Philox4x32-10 of four words, each a Python integer."""
    a, b, c, d = counter
    key0, key1 = key & MASK, key >> 32 & MASK
    for _ in range(10):
        product0, product1 = 0xD2511F53 * a, 0xCD9E8D57 * c
        a, b, c, d = (product1 >> 32 ^ b ^ key0, product1 & MASK,
                      product0 >> 32 ^ d ^ key1, product0 & MASK)
        key0, key1 = (key0 + 0x9E3779B9) & MASK, (key1 + 0xBB67AE85) & MASK
    return a, b, c, d


def philox_words(seed, stream, count):
    """The first `count` 32-bit words of a stream, as uint64."""
    blocks = np.arange((count + 3) // 4, dtype=np.uint64)
    low = np.uint64(MASK)
    half = np.uint64(32)
    words = [blocks & low, blocks >> half, np.full_like(blocks, stream & MASK),
             np.full_like(blocks, stream >> 32)]
    key0, key1 = seed & MASK, seed >> 32 & MASK
    for _ in range(10):
        product0 = np.uint64(0xD2511F53) * words[0]
        product1 = np.uint64(0xCD9E8D57) * words[2]
        words = [product1 >> half ^ words[1] ^ np.uint64(key0), product1 & low,
                 product0 >> half ^ words[3] ^ np.uint64(key1), product0 & low]
        key0, key1 = (key0 + 0x9E3779B9) & MASK, (key1 + 0xBB67AE85) & MASK
    return np.stack(words, axis=1).reshape(-1)[:count]


def open_uniform(seed, stream, count):
    """Numbers in the open interval (0, 1), one of each word."""
    return (philox_words(seed, stream, count).astype(np.float64) + 0.5) * 2.0**-32


def portable_log(x):
    """Natural logarithm of additions, products and quotients only."""
    mantissa, exponent = np.frexp(x)
    small = mantissa < 0.70710678118654752440
    mantissa = np.where(small, mantissa * 2, mantissa)
    exponent = (exponent - small).astype(np.float64)
    s = (mantissa - 1) / (mantissa + 1)
    square = s * s
    series = np.zeros_like(s)
    for k in range(27, 0, -2):
        series = series * square + 1.0 / k
    return exponent * 6.93147180369123816490e-01 + (
        2 * s * series + exponent * 1.90821492927058770002e-10)


def portable_exp(x):
    """e^x of additions, products and quotients only, for numbers whose exponential is normal."""
    k = np.floor(x / (6.93147180369123816490e-01 + 1.90821492927058770002e-10) + 0.5)
    r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
    series = np.ones_like(x)
    for n in range(14, 0, -1):
        series = 1 + series * r / n
    return np.ldexp(series, k.astype(np.int64))


# Wichura's AS 241, PPND16: numerator and denominator of three ranges, lowest power first.
CENTRE = ((3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
           1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
           3.3430575583588128105e4, 2.5090809287301226727e3),
          (1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
           2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
           5.2264952788528545610e3))
SIDE = ((1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
         3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
         2.27238449892691845833e-2, 7.74545014278341407640e-4),
        (1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
         1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
         1.05075007164441684324e-9))
TAIL = ((6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
         2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
         2.71155556874348757815e-5, 2.01033439929228813265e-7),
        (1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
         7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
         2.04426310338993978564e-15))


def ratio(polynomials, r):
    above = np.full_like(r, polynomials[0][7])
    below = np.full_like(r, polynomials[1][7])
    for power in range(6, -1, -1):
        above = above * r + polynomials[0][power]
        below = below * r + polynomials[1][power]
    return above / below


def normal_quantile(p):
    """x with P(X <= x) = p for a standard normal X, 0 < p < 1."""
    q = p - 0.5
    x = np.empty_like(q)
    central = np.abs(q) <= 0.425
    inner = q[central]
    x[central] = inner * ratio(CENTRE, 0.180625 - inner * inner)
    outer = q[~central]
    r = np.sqrt(-portable_log(np.where(outer < 0, p[~central], 1 - p[~central])))
    size = np.where(r <= 5, ratio(SIDE, r - 1.6), ratio(TAIL, r - 5))
    x[~central] = np.where(outer < 0, -size, size)
    return x


def normal_cdf(x):
    return 0.5 * math.erfc(-x * 0.70710678118654752440)


def permuted_index(index, size, seed, stream):
    """The number at place `index` of a permutation of 0 … size-1: a four-round Feistel network."""
    half_bits = 1
    while half_bits < 32 and 1 << 2 * half_bits < size:
        half_bits += 1
    mask = (1 << half_bits) - 1
    while True:
        left, right = index >> half_bits & mask, index & mask
        for turn in range(4):
            mixed = philox((right, turn, stream & MASK, stream >> 32 & MASK), seed)[0]
            left, right = right, left ^ mixed & mask
        index = left << half_bits | right
        if index < size:
            return index


def draw_initial(weight, seed):
    """Initial float32 values of a weight of the request: {"name", "shape", "init": {"kind", …}}."""
    rule, count = weight["init"], math.prod(weight["shape"])
    if rule["kind"] == "constant":
        values = np.full(count, rule["value"])
    else:
        values = distribution(rule)(open_uniform(seed, stream_number(weight["name"]), count))
    return values.astype(np.float32).reshape(weight["shape"])


def inverse_softplus_of_log_uniform(low, high, u):
    """y with softplus(y) = e^w, w uniform between log low and log high."""
    low, high = (portable_log(np.float64(bound)) for bound in (low, high))
    wanted = portable_exp(low + (high - low) * u)
    return wanted + portable_log(1 - portable_exp(-wanted))


def distribution(rule):
    """The function that turns uniform numbers in (0, 1) into numbers of a distribution."""
    if rule["kind"] == "normal":
        return lambda u: rule["std"] * normal_quantile(u)
    if rule["kind"] == "uniform":
        return lambda u: rule["bound"] * (2 * u - 1)
    if rule["kind"] == "log_uniform":
        return lambda u: portable_log(rule["low"] + (rule["high"] - rule["low"]) * u)
    if rule["kind"] == "inverse_softplus":
        return lambda u: inverse_softplus_of_log_uniform(rule["low"], rule["high"], u)
    if rule["kind"] != "truncated_normal":
        raise ValueError(f"'{rule['kind']}' is no initial distribution")
    std, cut = rule["std"], rule["cut"]
    # Rounded, because C libraries may differ in the last bit of erfc.
    tail = math.floor(normal_cdf(-cut / std) * 2.0**40 + 0.5) * 2.0**-40
    return lambda u: np.clip(std * normal_quantile(tail + u * (1 - 2 * tail)), -cut, cut)
