"""An outside host adapter with a failure domain for each of its calls.

Hot where such a host is asked; the built-in one needs none. Builtins only.
"""

from gstack.isolation import CALL_LIMIT, isolated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from gstack.plan import Plan

#: Methods of a host adapter that read files, and may take longer: the hook's own deadline is near.
SLOW_METHODS = {
    **dict.fromkeys(["last_load", "read_end", "read_run", "read_transcript", "rest_lacks"], 4.0),
    "skill_places": 1.0,
    "skills_in": 1.0,
}


class GuardedHost:
    """An outside host adapter whose every method call is a failure domain of its own.

    A call that fails raises PluginFailed and is remembered; what hosts may say with an error (GstackError, OSError)
    passes through.
    """

    def __init__(self, host: "Any", name: str, plan: "Plan") -> None:
        self._host = host
        self._name = name
        self._plan = plan

    def __getattr__(self, name: str) -> "Any":
        value = getattr(self._host, name)
        return self._guarded(name, value) if callable(value) else value

    def _guarded(self, name: str, function: "Callable[..., Any]") -> "Callable[..., Any]":
        def call(*args: "Any", **named: "Any") -> "Any":
            limit = SLOW_METHODS.get(name, CALL_LIMIT)
            try:
                return isolated(self._name, lambda: function(*args, **named), limit=limit)
            except Exception as error:
                from gstack.errors import GstackError
                from gstack.failures import failure_of

                failed = failure_of(self._name, error)
                if isinstance(failed.__cause__, (GstackError, OSError)):
                    raise failed.__cause__ from None
                raise self._plan.note(failed) from failed.__cause__

        return call
