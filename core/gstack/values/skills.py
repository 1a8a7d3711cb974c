"""Skills, and the folders that hold them.

Hot: builtins only. Import these names from :mod:`gstack.api`.
"""

from gstack.api import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Skill(Value):
    """One installed skill as its host sees it.

    ``name`` is how the host invokes it (a directory name, or ``plugin:name``); ``label`` the frontmatter's
    ``name`` when it differs; ``path`` its ``SKILL.md``; ``scope`` is ``personal``, ``project`` or ``plugin``;
    ``routing_off`` whether the skill keeps itself out; ``contract`` the declared contract as plain data (None:
    it declares none); ``sources`` says where ``triggers``, ``routing`` and ``contract`` came from.
    """

    __slots__ = (
        "contract",
        "description",
        "first_step",
        "label",
        "name",
        "path",
        "routing_off",
        "routing_on",
        "scope",
        "sources",
        "triggers",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        path: str,
        *,
        label: "str | None" = None,
        description: str = "",
        scope: str = "personal",
        triggers: "tuple[str, ...]" = (),
        routing_off: bool = False,
        routing_on: bool = False,
        contract: "dict[str, Any] | None" = None,
        first_step: str = "",
        sources: "dict[str, str] | None" = None,
    ) -> None:
        self.name = name
        self.path = path
        self.label = label
        self.description = description
        self.scope = scope
        self.triggers = triggers
        self.routing_off = routing_off
        self.routing_on = routing_on
        self.contract = contract
        self.first_step = first_step
        self.sources = sources or {}


class SkillRoot(Value):
    """A folder that holds skills: ``path``, ``scope`` (as in :class:`Skill`) and, for a plugin, its ``prefix``.

    ``hidden`` are the invocable names that the host's own settings switch off, ``unroutable`` those that they keep
    from the model (only a person can invoke them).
    """

    __slots__ = ("hidden", "path", "prefix", "scope", "unroutable")

    def __init__(
        self,
        path: str,
        scope: str,
        prefix: str = "",
        *,
        hidden: "tuple[str, ...]" = (),
        unroutable: "tuple[str, ...]" = (),
    ) -> None:
        self.path = path
        self.scope = scope
        self.prefix = prefix
        self.hidden = hidden
        self.unroutable = unroutable
