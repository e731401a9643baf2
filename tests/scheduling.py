"""Which tests run on one worker, and which start first, when several workers share them.

Tests that share fits and compiled code belong together. Groups are read off the names of tests,
because a marker of xdist (`xdist_group`) is overlooked under pytest 9.
"""

# What takes longest begins first, so that no worker is left with it at the end; but one worker
# has compiled the networks, and the other the methods, before more tests want them.
LONGEST_FIRST = (
    "tests/scores/test_neural.py",
    "tests/test_documents.py",
    "tests/contracts/test_scores.py",
    "tests/runs/test_extension.py",
    "tests/test_end_to_end.py",
    "tests/contracts/test_methods.py",
    "tests/methods",
    "tests/bench",
    "tests/cli",
)
BY_METHOD = ("tests/contracts/test_methods.py", "tests/contracts/test_posteriors.py")


def group(nodeid: str) -> str:
    """The module of a test, or its method where every method is tested alike."""
    module = nodeid.partition("::")[0]
    if module not in BY_METHOD or not nodeid.endswith("]"):
        return module
    # Parameters are joined by "-"; the method comes last.
    return "method " + nodeid[:-1].rpartition("[")[2].rpartition("-")[2]


def rank(nodeid: str) -> int:
    """Smaller for what should begin earlier."""
    found = (k for k, start in enumerate(LONGEST_FIRST) if nodeid.startswith(start))
    return next(found, len(LONGEST_FIRST))
