"""Splitting a command line into simple commands, as a POSIX shell does.

Hot and hand-written: contract kinds and waivers read every shell call of a run with it in the stop hook, where
``shlex`` (which knows no substitutions, heredocs or separators and imports ``re``) is out of reach. One pass over the
text, time linear in its length, nothing is ever raised: text that no shell would accept (PowerShell, prose, half a
command) is still split into something plausible.
"""

_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
#: What an ANSI-C quote's numbers look like: letter to (digits allowed, base).
_ANSI_NUMBERS = {"x": (2, 16), "u": (4, 16), "U": (8, 16)}
_HEX = "0123456789abcdefABCDEF"


class Word:
    """One word after quote removal.

    ``text`` has variables as they were written and ``$()`` for each command substitution; ``quoted`` says whether any
    part was quoted or escaped; ``raw`` is the word as written where it holds a backslash (a Windows path), else
    ``text``.
    """

    __slots__ = ("quoted", "raw", "text")

    def __init__(self, text: str, quoted: bool = False, raw: "str | None" = None) -> None:
        self.text = text
        self.quoted = quoted
        self.raw = text if raw is None else raw

    def __repr__(self) -> str:
        return f"Word({self.text!r}{', quoted' if self.quoted else ''})"

    @property
    def program(self) -> str:
        """The word as a program's name: no folder, no ``.exe``, lower case."""
        path = self.raw if _is_windows_path(self.raw) else self.text
        name = path.strip("\"'").replace("\\", "/").rsplit("/", 1)[-1].lower()
        for ending in (".exe", ".cmd", ".bat"):
            if name.endswith(ending):
                return name[: -len(ending)]
        return name


def _is_windows_path(raw: str) -> bool:
    """Whether a backslash in a word separates folders: something stands before it and a name's letter after it."""
    place = raw.find("\\", 1)
    while place > 0:
        after = raw[place + 1 : place + 2]
        if after.isalnum() or after in ("_", "."):
            return True
        place = raw.find("\\", place + 1)
    return False


class Command:
    """One simple command.

    ``words`` are its name and arguments; ``env`` the assignments before it, redirections are left out; ``stdin`` is
    the text of the heredoc or here-string that feeds it (``""`` for a file, None when nothing does); ``before`` and
    ``after`` are the separators round it (``""`` at the ends; ``&&``, ``||``, ``;``, ``|``, ``&``, a newline);
    ``inner`` whether it stands in a substitution; ``keywords`` the reserved words in front of it.
    """

    __slots__ = ("after", "before", "env", "inner", "keywords", "stdin", "words")

    def __init__(self, before: str = "", inner: bool = False) -> None:
        self.words: list[Word] = []
        self.env: list[str] = []
        self.stdin: str | None = None
        self.before = before
        self.after = ""
        self.inner = inner
        self.keywords: list[str] = []

    def __repr__(self) -> str:
        return f"Command({self.before!r} {self.env} {self.words} {self.after!r})"

    @property
    def texts(self) -> "list[str]":
        """The text of each word."""
        return [word.text for word in self.words]

    @property
    def fed(self) -> bool:
        """Whether something comes in on standard input: a heredoc, a file, or a pipe."""
        return self.stdin is not None or self.before in ("|", "|&")


def commands(text: str) -> "list[Command]":
    """The simple commands of ``text``, in the order in which they end; those of a substitution come before the
    command that holds it. Text in single quotes, heredocs and comments yields none."""
    from gstack.shell_reader import Reader

    return Reader(text).read()


def ansi_text(text: str, place: int) -> "tuple[str, int]":
    """The text of an ANSI-C quote (``$'...'``) from the character after its opening quote on, and where it ends."""
    pieces = []
    size = len(text)
    while place < size and text[place] != "'":
        if text[place] != "\\" or place + 1 >= size:
            pieces.append(text[place])
            place += 1
            continue
        letter = text[place + 1]
        place += 2
        if letter in _ANSI:
            pieces.append(_ANSI[letter])
        elif letter in _ANSI_NUMBERS:
            piece, place = _number(text, place, *_ANSI_NUMBERS[letter], "\\" + letter)
            pieces.append(piece)
        elif letter in "01234567":
            piece, place = _number(text, place - 1, 3, 8, "")
            pieces.append(piece)
        else:
            pieces.append(letter if letter in "\\'\"?" else "\\" + letter)
    return "".join(pieces), place + 1


def heredoc_delimiter(text: str, place: int) -> "tuple[str, int]":
    """The delimiter of a heredoc, without its quotes, and where it ends."""
    size = len(text)
    while place < size and text[place] in " \t":
        place += 1
    pieces = []
    while place < size and text[place] not in " \t\r\n;&|()<>":
        char = text[place]
        if char in "'\"":
            end = text.find(char, place + 1)
            end = size if end < 0 else end
            pieces.append(text[place + 1 : end])
            place = end
        elif char != "\\":
            pieces.append(char)
        place += 1
    return "".join(pieces), min(place, size)


def is_assignment(head: str) -> bool:
    """Whether a word starts ``NAME=``, ``NAME+=`` or ``NAME[x]=`` before any quote."""
    name, equals, _ = head.partition("=")
    if not equals:
        return False
    name = name.removesuffix("+")
    if name.endswith("]"):
        name = name.partition("[")[0]
    return name.isidentifier() and name.isascii()


def _number(text: str, place: int, most: int, base: int, otherwise: str) -> "tuple[str, int]":
    """The character whose number starts at ``place``, and where it ends; ``otherwise`` when there is no digit."""
    digits = _HEX[:base] if base == 8 else _HEX
    end = place
    while end < len(text) and end < place + most and text[end] in digits:
        end += 1
    if end == place:
        return otherwise, place
    code = int(text[place:end], base)
    return (chr(code) if code <= 0x10FFFF else "�"), end
