"""Words in the making: quotes, escapes, and where a finished word goes.

The lower half of the shell reader (:mod:`gstack.shell_reader`). Hot and hand-written like :mod:`gstack.shell`.
"""

from gstack.shell import Command, Word, is_assignment

#: Reserved words that stand before a command or end a compound one; they are no command themselves.
KEYWORDS = frozenset(
    (
        *("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "case", "esac"),
        *("function", "coproc", "{", "}", "!"),
    )
)

_ANSI = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "v": "\v"}
#: What an ANSI-C quote's numbers look like: letter to (digits allowed, base).
_ANSI_NUMBERS = {"x": (2, 16), "u": (4, 16), "U": (8, 16)}
_HEX = "0123456789abcdefABCDEF"


class Frame:
    """One command list that is being read: the whole text, a subshell, a substitution."""

    __slots__ = (
        "cases", "close", "command", "conditional", "dead", "depth", "escaped", "head", "in_word", "inner", "modes",
        "nested", "pattern", "pieces", "redirect", "skip_word", "start", "tail",
    )  # fmt: skip

    def __init__(self, close: str = "", *, inner: bool = False, dead: bool = False) -> None:
        self.close = close  # what ends it: ")" or "`"
        self.inner = inner
        self.dead = dead  # its words are no commands (an array, a pattern)
        self.command = Command(inner=inner)
        self.modes: list[str] = []  # open quotes and braces: '"', "{", "a" (arithmetic)
        self.depth = 0  # of parentheses in arithmetic
        self.cases = 0  # open case statements
        self.pattern = False  # between "in" or ";;" and ")"
        self.conditional = False  # inside [[ ]]
        self.skip_word = False  # the next word is a function's name
        self.redirect = ""  # the operator whose target comes next
        self.tail: Command | None = None  # the last command of a subshell that just closed
        self.pieces: list[str] = []
        self.in_word = False
        self.start = 0
        self.head: str | None = None  # what stood before the word's first quote
        self.escaped = False
        self.nested = False


class Words:
    """The part of a reader that builds the words of the command in progress."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.frame = Frame()
        self.conditional_end = 0  # where the next "]]" is known to be, -1 for nowhere

    def _add(self, piece: str) -> None:
        frame = self.frame
        if not frame.in_word:
            frame.in_word = True
            frame.start = self.place
        frame.pieces.append(piece)

    def _quote(self) -> None:
        """The word in progress has a quoted part from here on."""
        frame = self.frame
        if frame.head is None:
            frame.head = "".join(frame.pieces)
        if not frame.in_word:
            frame.in_word = True
            frame.start = self.place

    def _run_to(self, stop: "frozenset[str]") -> None:
        """Add everything up to the next character of ``stop`` to the word."""
        text, start, size = self.text, self.place, len(self.text)
        end = start
        while end < size and text[end] not in stop:
            end += 1
        self._add(text[start:end])
        self.place = end

    def _end_word(self) -> None:
        frame = self.frame
        if not frame.in_word:
            return
        text = "".join(frame.pieces)
        raw = self.text[frame.start : self.place] if frame.escaped and not frame.nested else None
        word, head = Word(text, frame.head is not None, raw), frame.head
        frame.pieces = []
        frame.in_word = frame.escaped = frame.nested = False
        frame.head = None
        command = frame.command
        if frame.redirect:
            if frame.redirect in ("<", "<>", "<<<"):
                command.stdin = text if frame.redirect == "<<<" else ""
            frame.redirect = ""
        elif frame.pattern:
            if text == "esac" and not word.quoted:
                frame.pattern = False
                frame.cases -= 1
                command.keywords.append(text)
        elif frame.skip_word:
            frame.skip_word = False
        elif not command.words:
            self._first_word(word, text if head is None else head)
        else:
            command.words.append(word)
            if frame.conditional:
                frame.conditional = text != "]]"
            elif text == "in" and len(command.words) == 3 and command.words[0].text == "case":
                frame.cases += 1
                frame.pattern = True
                command.words = []

    def _first_word(self, word: Word, head: str) -> None:
        """A word where a command's name is expected; ``head`` is its part before any quote."""
        frame = self.frame
        command = frame.command
        if is_assignment(head):
            command.env.append(word.text)
            return
        if not word.quoted and word.text in KEYWORDS and not command.env:
            command.keywords.append(word.text)
            if word.text == "function":
                frame.skip_word = True
            if word.text == "esac" and frame.cases:
                frame.cases -= 1
            if word.text not in ("for", "case", "select"):
                return
        command.words.append(word)
        if word.text == "[[" and not word.quoted:
            if 0 <= self.conditional_end < self.place:
                self.conditional_end = self.text.find("]]", self.place)
            frame.conditional = self.conditional_end >= 0

    def _backslash(self) -> None:
        after = self.text[self.place + 1 : self.place + 2]
        if after == "\n" or self.text.startswith("\\\r\n", self.place):
            self.place += 2 if after == "\n" else 3
            return
        self._quote()
        self.frame.escaped = True
        self._add(after)
        self.place += 2

    def _single(self) -> None:
        end = self.text.find("'", self.place + 1)
        end = len(self.text) if end < 0 else end
        self._add(self.text[self.place + 1 : end])
        self.place = end + 1

    def _ansi(self) -> None:
        """``$'...'``, from the quote on."""
        piece, end = ansi_text(self.text, self.place + 1)
        self._add(piece)
        self.place = end


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
