"""Text that comes from the data, made safe to print: names are data, not markup."""


def printable(text: str) -> str:
    r"""`text` on one line, with everything that a terminal would obey shown escaped.

    Control characters, line breaks, ANSI sequences and marks that reverse the direction of
    writing appear as Python would write them; letters of all scripts stay as they are.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
