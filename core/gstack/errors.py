"""The errors that people see, each with its exit code and code word.

::

    GstackError                 1   GSTACK_ERROR
    |-- CannotJudge             1                            replay: a contract kind has no verdict (never shown)
    |-- CheckFailed             1   GSTACK_CHECK_FAILED      a check said no (doctor, config key, gate test)
    |-- FetchError              1   GSTACK_NETWORK_ERROR     a server can't be reached, or its answer can't be used
    |-- UsageError              2   GSTACK_USAGE             a missing or malformed argument
    |   |-- RouteUsage          2   SKILL_ROUTE_USAGE
    |   `-- ContractUsage       2   SKILL_CONTRACT_USAGE
    |-- StateError              3   GSTACK_STATE_ERROR       a file can't be read, parsed or written
    |   |-- SettingsError       3   GSTACK_SETTINGS_ERROR    a host's settings file; it was left as it was
    |   |-- ContractState       3   SKILL_CONTRACT_STATE_ERROR
    |   |   `-- RecordError     3                            a session's record can't be used
    |   `-- BundleError         3   GSTACK_BUNDLE_ERROR      a policy bundle is missing or was refused
    |       |-- BundleMissing   3                            there is none on this machine
    |       |-- BundleRefused   3                            a check of it failed
    |       `-- SkillRefused    3                            a skill may not be installed as it was served
    |-- UnknownShape            4   SKILL_CONTRACT_UNKNOWN_SHAPE
    |-- NoContract              5   SKILL_CONTRACT_NO_CONTRACT
    `-- NotLoaded               6   SKILL_CONTRACT_NOT_LOADED

Those that aren't below lie where they are raised: :class:`gstack.gate.client.FetchError`,
:class:`gstack.gate.index.BundleMissing`, :class:`gstack.gate.signing.BundleRefused`,
:class:`gstack.gate.package.SkillRefused`, :class:`gstack.replay.scene.CannotJudge`.

The numbers are those of the specification (contracts C8, switches S2, gate G3). The command line prints
``<code word>: <message>`` as one line on standard error and exits with the code; ``--debug`` adds the traceback.
Used by the hook as well, so builtins only. Making these classes costs as much as all else that a stop does, so hot
modules import them where they raise one, and look at what they caught before they do.
"""


class GstackError(Exception):
    """Base of all errors that end in one clear line. The message says what, where and what to do."""

    exit_code = 1
    code = "GSTACK_ERROR"

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class CheckFailed(GstackError):
    """A check said no."""

    code = "GSTACK_CHECK_FAILED"


class UsageError(GstackError):
    """A missing or malformed argument."""

    exit_code = 2
    code = "GSTACK_USAGE"


class RouteUsage(UsageError):
    """Bad usage of ``gstack route`` (routing R5)."""

    code = "SKILL_ROUTE_USAGE"


class ContractUsage(UsageError):
    """Bad usage of ``gstack contract`` (contracts C8)."""

    code = "SKILL_CONTRACT_USAGE"


class StateError(GstackError):
    """A file can't be read, parsed or written; nothing was changed."""

    exit_code = 3
    code = "GSTACK_STATE_ERROR"


class SettingsError(StateError):
    """A host's settings file can't be read, parsed or written; it was left as it was."""

    code = "GSTACK_SETTINGS_ERROR"


class ContractState(StateError):
    """A transcript, record or state folder can't be read or written (contracts C8)."""

    code = "SKILL_CONTRACT_STATE_ERROR"


class RecordError(ContractState):
    """A session's record can't be used; ``path`` is the file."""

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path = path


class BundleError(StateError):
    """A policy bundle is missing, can't be read, or was refused; the last good one stays (gate G4)."""

    code = "GSTACK_BUNDLE_ERROR"


class BundleMissing(BundleError):
    """There is no policy bundle on this machine."""

    def __init__(self) -> None:
        super().__init__(
            "there is no policy bundle on this machine: run 'gstack sync', or 'gstack login' where it isn't connected"
        )


class UnknownShape(GstackError):
    """No transcript that any host adapter understands (contracts C8)."""

    exit_code = 4
    code = "SKILL_CONTRACT_UNKNOWN_SHAPE"


class NoContract(GstackError):
    """No such skill, no contract, or an invalid one (contracts C8)."""

    exit_code = 5
    code = "SKILL_CONTRACT_NO_CONTRACT"


class NotLoaded(GstackError):
    """The transcript never loads the skill (contracts C8)."""

    exit_code = 6
    code = "SKILL_CONTRACT_NOT_LOADED"
