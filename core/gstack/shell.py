"""Splitting a command line into simple commands, as a POSIX shell does.

Hot and hand-written: contract kinds and waivers read every shell call of a run with it in the stop hook, where
``shlex`` (which knows no substitutions, heredocs or separators and imports ``re``) is out of reach. One pass over the
text, time linear in its length, nothing is ever raised: text that no shell would accept (PowerShell, prose, half a
command) is still split into something plausible.
"""


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
    ``inner`` whether it stands in a substitution, ``ticked`` whether that is one of backticks inside double quotes
    (which a shell runs, but a model means as Markdown); ``keywords`` the reserved words in front of it.
    """

    __slots__ = ("after", "before", "env", "inner", "keywords", "stdin", "ticked", "words")

    def __init__(self, before: str = "", inner: bool = False) -> None:
        self.words: list[Word] = []
        self.env: list[str] = []
        self.stdin: str | None = None
        self.before = before
        self.after = ""
        self.inner = inner
        self.ticked = False
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


def is_assignment(head: str) -> bool:
    """Whether a word starts ``NAME=``, ``NAME+=`` or ``NAME[x]=`` before any quote."""
    name, equals, _ = head.partition("=")
    if not equals:
        return False
    name = name.removesuffix("+")
    if name.endswith("]"):
        name = name.partition("[")[0]
    return name.isidentifier() and name.isascii()
