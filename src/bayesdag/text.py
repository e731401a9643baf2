"""Text from outside: names made safe to print, and files of text that cannot be read."""


def printable(text: str) -> str:
    r"""`text` on one line, with everything that a terminal would obey shown escaped.

    Control characters, line breaks, ANSI sequences and marks that reverse the direction of
    writing appear as Python would write them; letters of all scripts stay as they are.

    >>> printable("a\x1b[31m\nb")
    'a\\x1b[31m\\nb'
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def why_unreadable(error: OSError | UnicodeDecodeError) -> str:
    """What is wrong with a text file that could not be read, and what to do.

    >>> why_unreadable(FileNotFoundError())
    'does not exist; check the name and the folder'
    """
    if isinstance(error, UnicodeDecodeError):
        return f"is not UTF-8 text (byte {error.start}); save it again in UTF-8"
    if isinstance(error, IsADirectoryError):
        return "is a folder; name the file in it"
    if isinstance(error, FileNotFoundError):
        return "does not exist; check the name and the folder"
    return f"cannot be read ({error.strerror or error}); check its permissions"
