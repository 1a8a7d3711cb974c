"""The configuration: one table of keys, a reader that tells absent, unreadable and invalid apart, and the switches.

Hot: imported by the hook, so builtins only. ``config.yaml`` holds flat ``key: value`` lines, readable without YAML.
Rules: spec, switches S1. Writing lies in :mod:`gstack.config_edit`.
"""

from gstack.lowlevel import join, read_file, sys_os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

#: The three features, in the order in which people see them.
SWITCHES = ("skill_routing", "skill_contracts", "gate")

#: The values of a switch, each narrower than the one before: a project may only go to the right.
_NARROWER = ("on", "observe", "off")

#: Every key: (type, default, environment variable or "", one line of help). ``switch`` takes on, off or observe;
#: ``list`` comma-separated names; ``number`` a decimal; ``choice:a|b`` one of the words; ``text`` anything on one line.
KEYS: "dict[str, tuple[str, str, str, str]]" = {
    "skill_routing": ("switch", "off", "GSTACK_SKILL_ROUTING", "Name the skill that fits a prompt."),
    "skill_contracts": (
        "switch",
        "off",
        "GSTACK_SKILL_CONTRACTS",
        "Hold a stop once if a skill's outputs are missing.",
    ),
    "gate": ("switch", "off", "GSTACK_GATE", "Check each use of a skill against the organisation's policy."),
    "routed_skills": ("list", "investigate, review, qa, verify", "", "Skills that may be routed to: names, or all."),
    "route_threshold": ("number", "0.66", "", "Score from which a skill is routed to (above 0, at most 1)."),
    "route_hint": (
        "choice:name|step|contract",
        "name",
        "GSTACK_SKILL_ROUTE_HINT",
        "What the routing hint says: the skill's name, also its first step, or also its contract.",
    ),
    "route_scorer": ("text", "lexical", "", "The trigger scorer that decides."),
    "route_shadow_scorers": ("list", "", "", "Scorers that run as well; what they say is only logged."),
    "route_equivalents": ("text", "", "", "More words that mean the same (bug=glitch,regression; slow=laggy)."),
}

#: Largest configuration file that is read, in bytes; more is no configuration.
_LIMIT = 1 << 20

_TRUE = ("on", "yes", "true", "1")
_FALSE = ("off", "no", "false", "0")


def switch_word(text: str) -> "str | None":
    """``on``, ``off`` or ``observe`` for any accepted spelling, None for anything else (switches S1)."""
    word = text.strip().lower()
    if word in _TRUE:
        return "on"
    if word in _FALSE:
        return "off"
    return word if word == "observe" else None


class Config:
    """A configuration as read: ``status`` is ``ok``, ``absent`` or ``unreadable``; ``problem`` says why it is
    unreadable."""

    __slots__ = ("path", "problem", "status", "values")

    def __init__(self, path: str, status: str, values: "dict[str, str] | None" = None, problem: str = "") -> None:
        self.path = path
        self.status = status
        self.values = values or {}
        self.problem = problem

    def has(self, key: str) -> bool:
        """Whether the file itself sets ``key``."""
        return key in self.values

    def get(self, key: str) -> str:
        """The value of ``key``, or the table's default (``""`` for a key that the table lacks)."""
        value = self.values.get(key)
        if value is None:
            row = KEYS.get(key)
            return row[1] if row else ""
        return value


def config_path(root: str) -> str:
    """Where the configuration lies."""
    return join(root, "config.yaml")


def read_config(root: str) -> Config:
    """The configuration of a state root."""
    return read_config_file(config_path(root))


def read_config_file(path: str) -> Config:
    """A configuration file. One that exists but isn't readable UTF-8 text is ``unreadable`` (it may hold an off)."""
    try:
        mode = sys_os.stat(path).st_mode & 0o170000
    except (FileNotFoundError, NotADirectoryError):
        try:
            sys_os.lstat(path)
        except OSError:
            return Config(path, "absent")
        return Config(path, "unreadable", problem="a link that leads nowhere")
    except (OSError, ValueError) as error:
        return Config(path, "unreadable", problem=_cause(error))
    if mode != 0o100000:
        return Config(path, "unreadable", problem="not a regular file")
    try:
        data = read_file(path, _LIMIT + 1)
        if len(data) > _LIMIT:
            return Config(path, "unreadable", problem="larger than 1 MiB")
        text = data.decode("utf-8").removeprefix("\ufeff")
    except OSError as error:
        return Config(path, "unreadable", problem=_cause(error))
    except UnicodeDecodeError as error:
        return Config(path, "unreadable", problem=f"not UTF-8 at byte {error.start}")
    return Config(path, "ok", parse_lines(text))


def _cause(error: Exception) -> str:
    return getattr(error, "strerror", None) or type(error).__name__


def parse_lines(text: str) -> "dict[str, str]":
    """The ``key: value`` lines of a configuration; the last one of a key wins, anything else is passed over."""
    values = {}
    for line in text.replace("\r", "\n").split("\n"):
        name, colon, value = line.partition(":")
        if colon and name and name[0] not in " \t#-" and (not value or value[0] in " \t"):
            values[name.strip()] = plain_value(value)
    return values


def plain_value(text: str) -> str:
    """A value without its quotes and its ``# comment``: ``off # why`` and ``"off"`` are off."""
    text = text.strip()
    if text[:1] in ("'", '"'):
        end = text.find(text[0], 1)
        if end > 0 and (not text[end + 1 :].strip() or text[end + 1 :].lstrip().startswith("#")):
            return text[1:end]
    if text.startswith("#"):
        return ""
    for mark in (" #", "\t#"):
        cut = text.find(mark)
        if cut >= 0:
            text = text[:cut]
    return text.strip()


class Switch:
    """A switch's ``value`` (on, off, observe) and the ``source`` that it came from: ``flag``, ``env``, ``config``,
    ``default``, ``config unreadable`` or ``project``."""

    __slots__ = ("source", "value")

    def __init__(self, value: str, source: str) -> None:
        self.value = value
        self.source = source

    def __repr__(self) -> str:
        return f"Switch({self.value!r}, {self.source!r})"


def switch(name: str, env: "Mapping[str, str]", config: Config, project: "Config | None" = None) -> Switch:
    """Resolve a switch (switches S1): the environment, the configuration, the default; then what a trusted project
    narrows.

    An unreadable configuration turns routing and contracts off whatever else is set, and leaves the gate on (unless
    the environment says otherwise): it protects the organisation.
    """
    found = _resolve(name, env, config)
    if project is None or name == "gate":
        return found
    if project.status == "unreadable":
        return Switch("off", "project")
    narrowed = switch_word(project.values.get(name, "")) or "on"
    if _NARROWER.index(narrowed) > _NARROWER.index(found.value):
        return Switch(narrowed, "project")
    return found


def _resolve(name: str, env: "Mapping[str, str]", config: Config) -> Switch:
    _, default, variable, _ = KEYS[name]
    if config.status == "unreadable" and name != "gate":
        return Switch("off", "config unreadable")
    said = env.get(variable, "")
    if said.strip():
        return Switch(switch_word(said) or default, "env" if switch_word(said) else "default")
    if config.status == "unreadable":
        return Switch("on", "config unreadable")
    if config.has(name):
        word = switch_word(config.values[name])
        return Switch(word, "config") if word else Switch(default, "default")
    return Switch(default, "default")


def setting(key: str, env: "Mapping[str, str]", config: Config) -> str:
    """The value of a key that is no switch: its environment variable (not empty), the configuration, the default.

    A value that the key's type refuses counts as not set.
    """
    _, default, variable, _ = KEYS[key]
    for value in (env.get(variable, "") if variable else "", config.values.get(key, "")):
        if value.strip() and problem_with(key, value) is None:
            return value.strip()
    return default


def problem_with(key: str, value: str) -> "str | None":
    """Why ``value`` can't be the value of ``key``, in a few words; None when it can."""
    kind = KEYS[key][0]
    if kind == "switch" and switch_word(value) is None:
        return "it must be on, off or observe"
    if kind.startswith("choice:") and value.strip() not in kind[7:].split("|"):
        return "it must be one of " + kind[7:].replace("|", ", ")
    if kind == "number":
        try:
            number = float(value)
        except ValueError:
            return "it must be a number"
        if not 0 < number <= 1:
            return "it must be above 0 and at most 1"
    return None


def names(value: str) -> "list[str]":
    """The names of a ``list`` value: commas or white space between them, ``[a, b]`` tolerated."""
    text = value.strip()
    if text.startswith("[") and text.endswith("]"):
        text = text[1:-1]
    return [part.strip("'\"") for part in text.replace(",", " ").split() if part.strip("'\"")]
