"""Tool calls, whatever the host calls the tool.

Hot: builtins only. Import these names from :mod:`gstack.api`.
"""

from gstack.api import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class ToolCall(Value):
    """One tool call, whatever the host calls the tool.

    ``kind`` is one of :data:`TOOL_KINDS`; ``id`` pairs it with its result (None in a host without ids);
    ``command`` is a shell call's text; ``paths`` what an edit or read names; ``skill``, ``agent_type``,
    ``agent_name`` and ``prompt`` (with ``description``) are set for skill and agent calls; ``input`` is the
    host's own argument object.
    """

    __slots__ = (
        "agent_name",
        "agent_type",
        "background",
        "command",
        "description",
        "id",
        "input",
        "kind",
        "native_name",
        "paths",
        "prompt",
        "skill",
    )  # fmt: skip

    def __init__(
        self,
        kind: str,
        native_name: str = "",
        *,
        id: "str | None" = None,
        command: "str | None" = None,
        paths: "tuple[str, ...]" = (),
        skill: "str | None" = None,
        agent_type: "str | None" = None,
        agent_name: "str | None" = None,
        description: "str | None" = None,
        prompt: "str | None" = None,
        background: bool = False,
        input: "Mapping[str, Any] | None" = None,
    ) -> None:
        self.kind = kind
        self.native_name = native_name
        self.id = id
        self.command = command
        self.paths = paths
        self.skill = skill
        self.agent_type = agent_type
        self.agent_name = agent_name
        self.description = description
        self.prompt = prompt
        self.background = background
        self.input = input


def skill_name(said: str) -> str:
    """A skill's name as people and models say it, without the white space and slashes before it."""
    return said.strip().lstrip("/").strip()
