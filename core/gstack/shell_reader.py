"""The state machine behind :func:`gstack.shell.commands`: one pass, an explicit stack instead of recursion.

Hot and hand-written for the same reasons as :mod:`gstack.shell`.
"""

from gstack.shell import Command, Word, ansi_text, heredoc_delimiter, is_assignment

#: Reserved words that stand before a command or end a compound one; they are no command themselves.
KEYWORDS = frozenset(
    (
        *("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "for", "select", "case", "esac"),
        *("function", "coproc", "{", "}", "!"),
    )
)

_PLAIN_STOP = frozenset(" \t\r\n\\'\"$`;&|()<>")
_DOUBLE_STOP = frozenset('"\\$`')
_BRACE_STOP = frozenset("'\"\\$`}")
_ARITH_STOP = frozenset("()\"'\\$`")

#: What stands in a word for a substitution.
_HOLE = "$()"
#: Substitutions and subshells in each other; what opens deeper ones is read as text.
MAX_DEPTH = 100


class _Frame:
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


class Reader:
    """Reads one text; :meth:`read` once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.found: list[Command] = []
        self.frame = _Frame()
        self.outer: list[_Frame] = []
        self.ticks = 0  # open backtick frames
        self.heredocs: list[tuple[Command, str, bool]] = []
        self.conditional_end = 0  # where the next "]]" is known to be, -1 for nowhere

    def read(self) -> "list[Command]":
        """The simple commands of the text, in the order in which they end."""
        size = len(self.text)
        while self.place < size:
            modes = self.frame.modes
            if not modes:
                self._plain()
            elif modes[-1] == '"':
                self._double()
            elif modes[-1] == "{":
                self._brace()
            else:
                self._arithmetic()
        while self.outer:
            self._pop()
        self._end_command("")
        return self.found

    # ------------------------------------------------------------------------------------ words and commands

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

    def _end_command(self, separator: str) -> None:
        self._end_word()
        frame = self.frame
        command = frame.command
        frame.redirect = ""
        frame.conditional = frame.skip_word = False
        if command.words or command.env or command.stdin is not None:
            command.after = separator
            if not frame.dead:
                self.found.append(command)
            frame.command = Command(separator, frame.inner)
        elif frame.tail is not None or separator != "\n" or command.keywords:
            frame.command = Command(separator if separator != "\n" or frame.tail else command.before, frame.inner)
        if frame.tail is not None:
            frame.tail.after = separator
            frame.tail = None

    def _push(self, frame: _Frame) -> None:
        if len(self.outer) >= MAX_DEPTH:
            return
        if self.frame.dead and not frame.inner:
            frame.dead = True
        self.outer.append(self.frame)
        self.frame = frame
        if frame.close == "`":
            self.ticks += 1

    def _pop(self) -> None:
        """Close the innermost command list."""
        self._end_command(self.frame.close)
        last = self.found[-1] if self.found and self.frame.close == ")" and not self.frame.inner else None
        if self.frame.close == "`":
            self.ticks -= 1
        self.frame = self.outer.pop()
        self.frame.tail = last if last is not None and last.after == ")" else None

    # ------------------------------------------------------------------------------------------------- modes

    def _plain(self) -> None:
        text, frame = self.text, self.frame
        char = text[self.place]
        if char in " \t\r":
            self._end_word()
            self.place += 1
        elif char == "\n":
            self._newline()
        elif char == "#" and not frame.in_word:
            self._comment()
        elif char == "\\":
            self._backslash()
        elif char == "'":
            self._quote()
            self._single()
        elif char == '"':
            self._quote()
            frame.modes.append('"')
            self.place += 1
        elif char == "$":
            self._dollar()
        elif char == "`":
            self._tick()
        elif char in _PLAIN_STOP:
            self._operator(char)
        else:
            self._run_to(_PLAIN_STOP)

    def _operator(self, char: str) -> None:
        """One of ``;&|()<>`` outside quotes."""
        frame = self.frame
        if frame.conditional or frame.pattern:
            self._end_word()  # which may end the condition or the case statement
        if frame.conditional or (frame.pattern and char != ")"):
            self.place += 1
        elif char == "(":
            self._open()
        elif char == ")":
            self._close()
        elif char in "<>" or (char == "&" and self.text[self.place + 1 : self.place + 2] == ">"):
            self._redirection()
        else:
            self._separator(char)

    def _double(self) -> None:
        char = self.text[self.place]
        if char == '"':
            self.frame.modes.pop()
            self.place += 1
        elif char == "\\":
            after = self.text[self.place + 1 : self.place + 2]
            if after != "\n":
                self._add(after if after in '$`"\\' else "\\" + after)
            self.place += 2
        elif char == "$":
            self._dollar()
        elif char == "`":
            self._tick()
        else:
            self._run_to(_DOUBLE_STOP)

    def _brace(self) -> None:
        """Inside ``${``, whose text stays in the word."""
        char, modes = self.text[self.place], self.frame.modes
        if char == "}":
            modes.pop()
            self._add("}")
            self.place += 1
        elif char == "'" and '"' not in modes:
            self._single()
        elif char == '"':
            modes.append('"')
            self.place += 1
        elif char == "\\":
            self._add(self.text[self.place + 1 : self.place + 2])
            self.place += 2
        elif char == "$":
            self._dollar()
        elif char == "`":
            self._tick()
        elif char == "'":
            self._add(char)
            self.place += 1
        else:
            self._run_to(_BRACE_STOP)

    def _arithmetic(self) -> None:
        """Inside ``$((`` or ``((``, where nothing but substitutions matters."""
        char, frame = self.text[self.place], self.frame
        if char == "$":
            self._dollar()
        elif char == "`":
            self._tick()
        elif char == "\\":
            self.place += 2
        elif char in _ARITH_STOP:
            if char in "()":
                frame.depth += 1 if char == "(" else -1
                if frame.depth <= 0:
                    frame.modes.pop()
            self.place += 1
        else:
            self._run_to(_ARITH_STOP)

    # ------------------------------------------------------------------------------------ quotes, substitutions

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

    def _dollar(self) -> None:
        text, frame = self.text, self.frame
        after = text[self.place + 1 : self.place + 2]
        if after == "(" and text.startswith("((", self.place + 1):
            self._add(_HOLE)
            self._start_arithmetic(3)
        elif after == "(":
            self._add(_HOLE)
            frame.nested = True
            self.place += 2
            self._push(_Frame(")", inner=True))
        elif after == "{":
            self._add("${")
            frame.modes.append("{")
            self.place += 2
        elif after == "'" and not frame.modes:
            self._quote()
            self.place += 1
            self._ansi()
        elif after == '"' and not frame.modes:
            self.place += 1
        else:
            self._add("$")
            self.place += 1

    def _start_arithmetic(self, width: int) -> None:
        self.frame.modes.append("a")
        self.frame.depth = 2
        self.place += width

    def _tick(self) -> None:
        if self.ticks:  # a tick in a tick can only close it
            while self.frame.close != "`":
                self._pop()
            self._pop()
        else:
            self._add(_HOLE)
            self.frame.nested = True
            self._push(_Frame("`", inner=True))
        self.place += 1

    # ---------------------------------------------------------------------------------------------- operators

    def _open(self) -> None:
        frame, command = self.frame, self.frame.command
        if frame.in_word:
            if self.text.startswith("()", self.place) and not command.words:
                frame.pieces, frame.in_word, frame.head = [], False, None
                command.keywords.append("function")
                self.place += 2
                return
            self._add(_HOLE)
            frame.nested = True
            self.place += 1
            self._push(_Frame(")", inner=frame.inner, dead=True))
        elif not command.words and self.text.startswith("((", self.place):
            self._start_arithmetic(2)
        elif self.text.startswith("()", self.place) and len(command.words) == 1:
            command.words = []
            command.keywords.append("function")
            self.place += 2
        else:
            self.place += 1
            self._push(_Frame(")", inner=frame.inner or bool(command.words)))

    def _close(self) -> None:
        frame = self.frame
        if frame.pattern:
            self._end_word()
            frame.pattern = False
            frame.command = Command(";", frame.inner)
            frame.command.keywords.append("case")
            self.place += 1
        elif frame.close == ")":
            self._pop()
            self.place += 1
        else:
            self._end_command(")")
            self.place += 1

    def _separator(self, char: str) -> None:
        text, frame = self.text, self.frame
        after = text[self.place + 1 : self.place + 2]
        width = 1
        if char == ";" and after in (";", "&"):
            width = 3 if text.startswith(";;&", self.place) else 2
            self._end_command(";")
            frame.pattern = frame.cases > 0
        elif after == char or (char == "|" and after == "&"):
            width = 2
            self._end_command(char + after)
        else:
            self._end_command(char)
        self.place += width

    def _redirection(self) -> None:
        text, frame = self.text, self.frame
        so_far = "".join(frame.pieces) if frame.in_word and len(frame.pieces) == 1 else ""
        if so_far and frame.head is None and (so_far.isdigit() or (so_far[0] == "{" and so_far[-1] == "}")):
            frame.pieces, frame.in_word = [], False
        else:
            self._end_word()
        if text.startswith("<<<", self.place):
            frame.redirect = "<<<"
            self.place += 3
        elif text.startswith("<<", self.place):
            self._heredoc()
        elif text[self.place + 1 : self.place + 2] == "(" and text[self.place] != "&":
            self._add("<()")
            frame.nested = True
            self.place += 2
            self._push(_Frame(")", inner=True))
        else:
            start = self.place
            while self.place < len(text) and self.place < start + 3 and text[self.place] in "<>&|":
                self.place += 1
            frame.redirect = text[start : self.place]

    def _comment(self) -> None:
        end = self.text.find("\n", self.place)
        end = len(self.text) if end < 0 else end
        if self.ticks:
            tick = self.text.find("`", self.place, end)
            end = end if tick < 0 else tick
        self.place = end

    def _newline(self) -> None:
        if self.frame.pattern or self.frame.conditional:
            self._end_word()
        else:
            self._end_command("\n")
        self.place += 1
        for command, delimiter, dashed in self.heredocs:
            command.stdin = self._heredoc_body(delimiter, dashed)
        self.heredocs = []

    def _heredoc(self) -> None:
        """``<<`` or ``<<-`` and the delimiter; the body comes after the line."""
        dashed = self.text.startswith("-", self.place + 2)
        delimiter, self.place = heredoc_delimiter(self.text, self.place + 2 + dashed)
        self.frame.command.stdin = ""
        self.heredocs.append((self.frame.command, delimiter, dashed))

    def _heredoc_body(self, delimiter: str, dashed: bool) -> str:
        text, size, start = self.text, len(self.text), self.place
        place = start
        while place < size:
            end = text.find("\n", place)
            end = size if end < 0 else end
            line = text[place:end].rstrip("\r")
            line = line.lstrip("\t") if dashed else line
            if line == delimiter:
                self.place = min(end + 1, size)
                return text[start:place]
            if self.outer and delimiter and line.startswith(delimiter + ")"):
                self.place = text.index(delimiter, place) + len(delimiter)
                return text[start:place]
            place = end + 1
        self.place = size
        return text[start:]
