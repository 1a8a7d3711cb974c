"""What contract kinds declare and say; what they judge is in :mod:`gstack.values.runs`.

Hot: builtins only. Import these names from :mod:`gstack.api`.
"""

from gstack.api import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Field(Value):
    """One field that a contract kind's items may carry.

    ``type`` is ``text``, ``texts`` (a list of at least one text), ``flag`` (true/false), ``number`` or
    ``regex`` (a Python expression that must compile).
    """

    __slots__ = ("default", "help", "name", "required", "type")

    def __init__(
        self,
        name: str,
        type: str = "text",
        *,
        required: bool = False,
        default: object = None,
        help: str = "",
    ) -> None:
        self.name = name
        self.type = type
        self.required = required
        self.default = default
        self.help = help


class Item(Value):
    """One required output of a contract: ``id``, ``kind`` and the kind's own ``fields`` (checked before).

    ``fix`` and ``summary`` are the pack author's own words, None when the kind's are to be used.
    """

    __slots__ = ("fields", "fix", "id", "kind", "summary")

    def __init__(
        self,
        id: str,
        kind: str,
        fields: "dict[str, Any] | None" = None,
        *,
        fix: "str | None" = None,
        summary: "str | None" = None,
    ) -> None:
        self.id = id
        self.kind = kind
        self.fields = fields or {}
        self.fix = fix
        self.summary = summary


class Verdict(Value):
    """What a kind says of an item: ``status`` (``met``, ``missing`` or ``cannot_tell``) and ``why`` in a few words."""

    __slots__ = ("status", "why")

    def __init__(self, status: str, why: str = "") -> None:
        self.status = status
        self.why = why
