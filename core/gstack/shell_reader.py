"""The state machine behind :func:`gstack.shell.commands`: one pass, an explicit stack instead of recursion.

Hot and hand-written for the same reasons as :mod:`gstack.shell`.
"""

from gstack.shell import Command
from gstack.shell_words import Frame, Words, heredoc_delimiter

_PLAIN_STOP = frozenset(" \t\r\n\\'\"$`;&|()<>")
_DOUBLE_STOP = frozenset('"\\$`')
_BRACE_STOP = frozenset("'\"\\$`}")
_ARITH_STOP = frozenset("()\"'\\$`")

#: What stands in a word for a substitution.
_HOLE = "$()"
#: Substitutions and subshells in each other; what opens deeper ones is read as text.
MAX_DEPTH = 100


class Reader(Words):
    """Reads one text; :meth:`read` once."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.found: list[Command] = []
        self.outer: list[Frame] = []
        self.ticks = 0  # open backtick frames: none or one
        self.ticked = False  # that one stands inside double quotes
        self.heredocs: list[tuple[Command, str, bool]] = []

    def read(self) -> "list[Command]":
        """The simple commands of the text, in the order in which they end."""
        size = len(self.text)
        while self.place < size:
            modes, char = self.frame.modes, self.text[self.place]
            if char == "$":
                self._dollar()
            elif char == "`":
                self._tick()
            elif not modes:
                self._plain(char)
            elif modes[-1] == '"':
                self._double(char)
            elif modes[-1] == "{":
                self._brace(char)
            else:
                self._arithmetic(char)
        while self.outer:
            self._pop()
        self._end_command("")
        return self.found

    def _end_command(self, separator: str) -> None:
        self._end_word()
        frame = self.frame
        command = frame.command
        frame.redirect = ""
        frame.conditional = frame.skip_word = False
        if command.words or command.env or command.stdin is not None:
            command.after = separator
            command.ticked = self.ticks > 0 and self.ticked
            if not frame.dead:
                self.found.append(command)
            frame.command = Command(separator, frame.inner)
        elif frame.tail is not None or separator != "\n" or command.keywords:
            frame.command = Command(separator if separator != "\n" or frame.tail else command.before, frame.inner)
        if frame.tail is not None:
            frame.tail.after = separator
            frame.tail = None

    def _push(self, frame: Frame) -> None:
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

    def _plain(self, char: str) -> None:
        frame = self.frame
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

    def _double(self, char: str) -> None:
        if char == '"':
            self.frame.modes.pop()
            self.place += 1
        elif char == "\\":
            after = self.text[self.place + 1 : self.place + 2]
            if after != "\n":
                self._add(after if after in '$`"\\' else "\\" + after)
            self.place += 2
        else:
            self._run_to(_DOUBLE_STOP)

    def _brace(self, char: str) -> None:
        """Inside ``${``, whose text stays in the word."""
        modes = self.frame.modes
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
        elif char == "'":
            self._add(char)
            self.place += 1
        else:
            self._run_to(_BRACE_STOP)

    def _arithmetic(self, char: str) -> None:
        """Inside ``$((`` or ``((``, where nothing but substitutions matters."""
        frame = self.frame
        if char == "\\":
            self.place += 2
        elif char in _ARITH_STOP:
            if char in "()":
                frame.depth += 1 if char == "(" else -1
                if frame.depth <= 0:
                    frame.modes.pop()
            self.place += 1
        else:
            self._run_to(_ARITH_STOP)

    # ------------------------------------------------------------------------------------------ substitutions

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
            self._push(Frame(")", inner=True))
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
            self.ticked = '"' in self.frame.modes
            self._push(Frame("`", inner=True))
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
            self._push(Frame(")", inner=frame.inner, dead=True))
        elif not command.words and self.text.startswith("((", self.place):
            self._start_arithmetic(2)
        elif self.text.startswith("()", self.place) and len(command.words) == 1:
            command.words = []
            command.keywords.append("function")
            self.place += 2
        else:
            self.place += 1
            self._push(Frame(")", inner=frame.inner or bool(command.words)))

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
            self._push(Frame(")", inner=True))
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
