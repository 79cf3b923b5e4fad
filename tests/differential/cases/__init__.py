"""The hand-written cases and those recorded in tests/golden."""


def all_cases():
    return []
