"""Random constants, names and texts."""

STRINGS = [
    "", "a", "b", "abc", "xay b", "Hello World", "a-b_c", "  pad ", "x\ny", "tab\tx", "1", "42", "-7",
    "3.14", "1e-3", " 12 ", "0x1f", "true", "null", "no", "~", "é", "straße", "Ünïcödé", "日本", "😀",
    "a,b,c", "k: v", "it's", 'say "hi"', "a\\b", "<b>&amp;</b>", "50%", "%s and %d", "{} {}", "{0!r:>5}",
    "camelCase", "UPPER", "# hash", "- item", "line1\nline2\n\nline4", "a b  c", "ab" * 6, "ﬁ", "ǆ", "İ",
]
INTEGERS = [0, 1, 2, 3, 4, 5, 7, 8, 10, 16, 64, 100, 255, 1000, 12345, 999999, 2**31, 2**53 + 1]
FLOATS = [
    "0.0", "1.0", "0.5", "2.5", "3.14159", "1e-05", "1e-3", "1e16", "1E+3", "1.5e300", "0.1", "100.0",
    "123456789.125", "1e22", "5e-324", "0.30000000000000004", "1_0.5", "2.675", "1e15", "0.0001",
]
# One alphabet for all, so that templates of a tree mean the same things by them.
NAMES = ["x", "y", "z", "n", "s", "lst", "dct", "nope"]


def string(random):
    text = random.choice(STRINGS)
    if random.random() < 0.05:
        text += random.choice(STRINGS)
    return text


def string_literal(random):
    text = string(random)
    quote = random.choice("'\"")
    escaped = text.replace("\\", "\\\\").replace(quote, "\\" + quote)
    # A line of the line syntax ends a statement, so that a newline is always escaped.
    escaped = escaped.replace("\n", "\\n").replace("\t", "\\t")
    if random.random() < 0.03:
        escaped += random.choice(["\\x41", "\\u00e9", "\\U0001F600", "\\101", "\\q", "\\'", "\\r", "\\0"])
    return quote + escaped + quote


def integer_literal(random):
    number = random.choice(INTEGERS) if random.random() < 0.7 else random.randrange(30)
    if random.random() < 0.04:
        return random.choice(["0x1F", "0b101", "0o17", "1_000", "00", "0xff"])
    return str(number)


def float_literal(random):
    return random.choice(FLOATS)
