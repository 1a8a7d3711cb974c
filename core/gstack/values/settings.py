"""What is registered in a host's settings, and what a diagnosis finds. Hot: builtins only; import these names from
:mod:`gstack.api`."""

from gstack.api import Value


class Registration(Value):
    """One entry that gstack wants in a host's settings: ``event`` (the host's own name), ``matcher`` (None: all),
    ``args`` for the launcher, ``timeout`` in seconds and ``condition`` (the host's own filter, None: none)."""

    __slots__ = ("args", "condition", "event", "feature", "matcher", "timeout")

    def __init__(
        self,
        event: str,
        args: "tuple[str, ...]",
        *,
        feature: str,
        matcher: "str | None" = None,
        timeout: int = 10,
        condition: "str | None" = None,
    ) -> None:
        self.event = event
        self.args = args
        self.feature = feature
        self.matcher = matcher
        self.timeout = timeout
        self.condition = condition


class Finding(Value):
    """One line of a diagnosis: ``status`` is ``ok``, ``warn``, ``fail`` or ``info``; ``fix`` says what to do."""

    __slots__ = ("check", "detail", "fix", "status")

    def __init__(self, status: str, check: str, detail: str = "", fix: str = "") -> None:
        self.status = status
        self.check = check
        self.detail = detail
        self.fix = fix
