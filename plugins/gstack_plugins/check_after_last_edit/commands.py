"""Whether a shell call's text runs a test, a check or code, by the tables of this package (contracts C2).

Hot: the stop hook judges with it, so builtins only.
"""

from gstack.shell import Command, Word, commands, is_assignment
from gstack_plugins.check_after_last_edit import table
from gstack_plugins.check_after_last_edit.names import says_script, says_target
from gstack_plugins.check_after_last_edit.wrappers import WRAPPERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

#: Program texts in each other (``sh -c "sh -c ..."``) and wrappers of one command that are looked into.
_MAX_PROGRAMS, _MAX_WRAPPERS = 50, 12
_URL_STARTS = ("$", "localhost", "127.", "0.0.0.0", "[::1]", ":")  # noqa: S104 - what a URL may start with

#: Each wrapper's rules and options, as written in the table.
_RULES = {name: rest for name, _, rest in [row.strip().partition(" = ") for row in WRAPPERS.strip().splitlines()]}
_TOOLS = {*table.VERBS, *table.NEEDS_FLAG, *table.ALIASES.values(), *table.TARGETS}

#: The beginnings of every name of several words: after one of these the next word may belong to the name.
_PREFIXES: set[str] = set()
for _name in (*_RULES, *table.ALIASES, *table.ALIASES.values(), *table.VERBS, *table.NEEDS_FLAG):
    while " " in _name:
        _name = _name.rpartition(" ")[0]
        _PREFIXES.add(_name)


def runs_check(text: str) -> bool:
    """Whether one of the commands of ``text`` is a test, a check or a repro."""
    programs = [text]
    for count in range(_MAX_PROGRAMS):
        if count >= len(programs):
            return False
        for command in commands(programs[count]):
            if not command.ticked and _counts(command.words, command, programs):
                return True
    return False


def _counts(words: "list[Word]", command: Command, programs: "list[str]") -> bool:
    """Whether a simple command counts; program text that it runs is added to ``programs``."""
    for _ in range(_MAX_WRAPPERS):
        while words and is_assignment(words[0].text):
            words = words[1:]
        if not words:
            return False
        name, rest = _tool(words)
        if name not in _RULES:
            if name == "find":
                words = _after(rest, ("-exec", "-execdir", "-ok", "-okdir"))
                continue
            if _tool_counts(name, words[0], rest, command, programs):
                return True
            words = _skip_options(rest, _valued(name)) if name in table.DIRECT else []  # yarn tsx repro.ts
            continue
        counts, words = _unwrap(name, rest, programs)
        if counts:
            return True
    return False


def _tool(words: "list[Word]") -> "tuple[str, list[Word]]":
    """The name of the tool that ``words`` run, its subcommands with it where the tables know them, and the rest."""
    name, rest = words[0].program, words[1:]
    name = name.partition("@")[0] or name  # vitest@2
    name = table.ALIASES.get(name, name)
    while name in _PREFIXES:
        after = _skip_options(rest, _valued(name))
        if not after:
            break
        longer = f"{name} {after[0].text}"
        longer = table.ALIASES.get(longer, longer)
        if longer not in _PREFIXES and longer not in _RULES and longer not in _TOOLS:
            break
        name, rest = longer, after[1:]
    return name, rest


def _valued(name: str) -> "frozenset[str]":
    return table.TOOL_VALUES.get(name, frozenset())


def _skip_options(words: "list[Word]", valued: "frozenset[str]") -> "list[Word]":
    """``words`` from the first that is no option, and no option's value, on."""
    place = 0
    while place < len(words):
        text = words[place].text
        if text in valued:
            place += 1
        elif not text.startswith(("-", "+")) or text == "-":
            break
        place += 1
    return words[place:]


def _after(words: "list[Word]", options: "Sequence[str]") -> "list[Word]":
    """The command after one of ``options``, as ``find -exec`` has it."""
    for place, word in enumerate(words):
        if word.text in options:
            end = place + 1
            while end < len(words) and words[end].text not in (";", "+"):
                end += 1
            return words[place + 1 : end]
    return []


# ---------------------------------------------------------------------------------------------- wrappers


def _unwrap(name: str, words: "list[Word]", programs: "list[str]") -> "tuple[bool, list[Word]]":
    """What the wrapper ``name`` runs: True when that is known to count, else the words of the command."""
    said, _, valued = _RULES[name].partition("|")
    rules = frozenset(said.split())
    options = {option: use for option, _, use in [one.partition(":") for one in valued.split()]}
    place = 0
    while place < len(words):
        text = words[place].text
        option, equals, value = text.partition("=")
        use = options.get(option)
        if use == "stop":
            return False, []
        if use == "rest":
            return False, words[place + 1 :]
        if use == "module":
            return False, [Word("python"), Word("-m"), *words[place + 1 :]]
        if use == "text":
            programs.append(value if equals else "".join([word.text for word in words[place + 1 : place + 2]]))
        plain = use is None and (not text.startswith("-") or text == "-") and not is_assignment(text)
        if "none" not in rules and (plain or text == "--"):
            break
        place += 1 if use is None or equals else 2
    words = words[place:]
    if "none" in rules:
        return False, []
    return _unwrapped(rules, words, programs)


def _unwrapped(rules: "frozenset[str]", words: "list[Word]", programs: "list[str]") -> "tuple[bool, list[Word]]":
    """The command among the words that follow a wrapper's options."""
    if words and words[0].text == "--":
        words = words[1:]
    elif "dashes" in rules:
        texts = [word.text for word in words]
        words = words[texts.index("--") + 1 :] if "--" in texts else words[1:]
    if "1" in rules:
        if "service" in rules and len(words) == 1:
            return says_target(words[0].text), []
        words = words[1:]
        words = words[1:] if words and words[0].text == "--" else words
    if "text" in rules:
        programs.append(" ".join([word.text for word in words]))
        return False, []
    if "each" in rules:
        programs.extend([word.text for word in words if not word.text.startswith("-")])
        return False, []
    if words and "names" in rules and not words[0].text.startswith("-") and says_target(words[0].text):
        return not _is_probe("", words[1:]), words
    if words and "python" in rules and (words[0].text == "-" or words[0].text.endswith(".py")):
        return False, [Word("python"), *words]
    tool = next((rule[1:] for rule in rules if rule.startswith("^")), "")
    return False, [Word(tool), *words] if tool else words


# ------------------------------------------------------------------------------------------------- tools


def _tool_counts(name: str, first: Word, args: "list[Word]", command: Command, programs: "list[str]") -> bool:
    """Whether a tool counts with these arguments."""
    if name in table.SHELLS:
        return _shell_counts(name, args, command, programs)
    if name in (".", "source"):
        return bool(args) and says_script(args[0].text)
    if _is_probe(name, args):
        return False
    if name in table.FETCHERS:
        return _has_url(args)
    if name in table.RUNNERS:
        return True
    flags = table.NEEDS_FLAG.get(name)
    if flags is not None:
        return any(word.text.partition("=")[0] in flags for word in args)
    if name in table.TARGETS and _has_target(name, args):
        return True
    if _verb_counts(name, args):
        return True
    family = _family(name)
    if family in table.INTERPRETERS:
        return _interpreter_counts(family, args, command)
    return _is_script(first) and says_script(first.raw if "\\" in first.raw else first.text)


def _verb_counts(name: str, args: "list[Word]") -> bool:
    """Whether the first argument is a verb that checks, or the name of a script that says so."""
    rest = _skip_options(args, _valued(name))
    if not rest:
        return False
    verb = rest[0].text
    verbs = table.VERBS.get(name, frozenset())
    if verb in verbs or verb.replace(".", ":").partition(":")[0] in verbs:
        return True
    if verb in table.SCRIPTS.get(name, frozenset()):
        script = _skip_options(rest[1:], _valued(name))
        return bool(script) and (says_target(script[0].text) or (name in table.FILES_ONLY and _is_file(script[0].text)))
    return name in table.DIRECT and not rest[0].quoted and says_target(verb)


def _has_target(name: str, args: "list[Word]") -> bool:
    """Whether an argument is a target whose name says test or check."""
    valued = _valued(name)
    rest = args
    while True:
        rest = _skip_options(rest, valued)
        if not rest:
            break
        if not is_assignment(rest[0].text) and says_target(rest[0].text.split(" ")[0]):
            return True
        rest = rest[1:]
    named = [word.text.partition("=") for word in args]
    return any(option in ("-t", "--target", "--targets") and says_target(value) for option, _, value in named)


def _is_probe(name: str, args: "list[Word]") -> bool:
    """Whether a tool is only asked for help, its version, a list, or a rehearsal."""
    if not args:
        return False
    texts = [word.text for word in args]
    own = table.OWN_PROBES.get(name, frozenset())
    if any(text in table.PROBES or (text in own and text.startswith("-")) for text in texts):
        return True
    if texts[0] in own or texts[-1] in table.HELP:
        return True
    if len(texts) > 1:
        return False
    if texts[0] == "-v":
        return _family(name) in table.SHORT_VERSION
    return texts[0] in table.ALONE and name not in table.LONG_VERBOSE


def _has_url(args: "list[Word]") -> bool:
    place = 0
    while place < len(args):
        text = args[place].text
        if "://" in text and not text.startswith(("{", "-H")):
            return True
        if text in table.FETCH_VALUES:
            place += 1
        elif not text.startswith("-") and (text.startswith(_URL_STARTS) or "." in text or "/" in text):
            return True
        place += 1
    return False


# ------------------------------------------------------------------------------------------ interpreters


def _family(name: str) -> str:
    """``python3.12`` is python."""
    return name.rstrip("0123456789.")


def _interpreter_counts(name: str, args: "list[Word]", command: Command) -> bool:
    """Whether an interpreter is given code: a script, program text, a module, or standard input."""
    code = table.CODE_OPTIONS.get(name, frozenset())
    valued = table.INTERPRETER_VALUES.get(name, frozenset())
    letters = {option[1] for option in code if len(option) == 2}
    place = 0
    while place < len(args):
        text = args[place].text
        if name in table.FILTERS and _is_filter_option(text):
            return False
        if text in code or (_is_cluster(text) and text[-1] in letters):
            return True
        if name in ("python", "pypy") and text.startswith("-") and _is_module_option(text):
            module = args[place + 1 :] if text.endswith("m") else [Word(text[2:]), *args[place + 1 :]]
            return _module_counts(module)
        if text in valued:
            place += 1
        elif text == "-":
            return command.fed
        elif not text.startswith(("-", "+")):
            return _script_counts(name, args[place:], command)
        place += 1
    return command.fed


def _is_cluster(text: str) -> bool:
    """Whether an option is several short ones in one word (``-lc``)."""
    return 2 < len(text) <= 6 and text[0] == "-" and text[1:].isalpha()


def _is_filter_option(text: str) -> bool:
    """Whether an option makes perl or ruby work on each line of its input."""
    if text[:2] in ("-n", "-p", "-i"):
        return True
    return text[:2] in ("-l", "-a", "-0") and any(letter in text[2:5] for letter in "npi")


def _is_module_option(text: str) -> bool:
    return text == "-m" or (text.startswith("-m") and text[2:3].isalpha()) or (_is_cluster(text) and text[-1] == "m")


def _module_counts(words: "list[Word]") -> bool:
    """Whether ``python -m module arguments`` counts."""
    if not words:
        return False
    module = words[0].text.lower()
    top = module.partition(".")[0]
    if module in table.RUNNERS or top in table.RUNNERS:
        return True
    if top in table.NOT_MODULES or module in table.NOT_MODULES:
        return top in _TOOLS and _tool_counts(*_as_tool(Word(top), words[1:]), Command(), [])
    return True


def _as_tool(word: Word, rest: "list[Word]") -> "tuple[str, Word, list[Word]]":
    name, args = _tool([word, *rest])
    return name, word, args


def _script_counts(name: str, words: "list[Word]", command: Command) -> bool:
    """Whether the script that an interpreter runs counts: any does but those that install or build."""
    path = words[0].text
    if name in table.FILES_ONLY and not _is_file(path):
        return False
    base = words[0].program
    stem = base.partition(".")[0]
    if stem in table.NOT_PROGRAMS:
        return _tool_counts(*_as_tool(Word(stem), words[1:]), command, [])
    return not (base == "setup.py" and any(word.text in table.NOT_SETUP for word in words[1:]))


def _is_file(text: str) -> bool:
    return "/" in text or "\\" in text or "." in text.strip(".")


def _shell_counts(name: str, args: "list[Word]", command: Command, programs: "list[str]") -> bool:
    """Whether a shell runs a script whose name says so; its program text is added to ``programs``."""
    place = 0
    while place < len(args):
        text = args[place].text
        lower = text.lower()
        if name == "cmd" and lower in ("/c", "/k", "//c"):
            programs.append(" ".join([word.text for word in args[place + 1 :]]))
            return False
        if lower in ("-c", "-command", "--command", "-commandwithargs") or (_is_cluster(text) and text[-1] == "c"):
            rest = args[place + 1 :] if name in ("pwsh", "powershell") else args[place + 1 : place + 2]
            programs.append(" ".join([word.text for word in rest]))
            return False
        if text in table.PROBES or text == "-n":
            return False
        if lower in ("-o", "+o", "-executionpolicy", "-ex", "--rcfile", "--init-file"):
            place += 1
        elif not text.startswith(("-", "+")):
            return says_script(text) and not _is_probe("", args[place + 1 :])
        place += 1
    if command.stdin:
        programs.append(command.stdin)
    return False


def _is_script(word: Word) -> bool:
    """Whether a word in a command's place may be a script: a path, or a plain name that is no builtin's."""
    if not word.text or word.program in table.NOT_SCRIPTS or word.text in table.NOT_SCRIPTS:
        return False
    return "/" in word.text or "\\" in word.raw or all(char.isalnum() or char in "-_." for char in word.text)
