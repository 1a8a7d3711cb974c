"""The four extension points. Read this first: a plug-in is one function of these four.

A plug-in is a module (or any object) that an installed distribution names in an entry-point group, with one
function marked by :func:`gstack.api.hookimpl`::

    # pyproject.toml
    [project.entry-points."gstack.contract_kinds"]
    "vendor.file_exists" = "vendor_gstack"

    # vendor_gstack.py
    from gstack.api import MET, MISSING, Field, Verdict, hookimpl

    class FileExists:
        name = "vendor.file_exists"
        fields = (Field("path", required=True),)
        ...

    @hookimpl
    def gstack_contract_kinds():
        return [FileExists()]

========================== =========================== ================================================
group                      hook                        returns a list of
========================== =========================== ================================================
``gstack.contract_kinds``  ``gstack_contract_kinds``   :class:`gstack.protocols.ContractKind`
``gstack.trigger_scorers`` ``gstack_trigger_scorers``  :class:`gstack.protocols.TriggerScorer`
``gstack.gate_resolvers``  ``gstack_gate_resolvers``   :class:`gstack.protocols.GateResolver`
``gstack.host_adapters``   ``gstack_host_adapters``    :class:`gstack.protocols.HostAdapter`
========================== =========================== ================================================

Rules for all four. The entry point's name is the plug-in's public id: names without a dot are for built-ins, an
outside plug-in uses ``vendor.name``. A module may set ``GSTACK_API`` to the version it was written for
(now 1); one that asks for another is listed as incompatible and not loaded. The functions take no argument and are
called once a process. A plug-in that can't be imported, raises, prints, exits or hangs costs only itself:
``gstack plugins list`` says what happened. Hook wrappers are refused, since a wrapper could rewrite what others say.
The hook starts anew on every event, so import what is slow where it is used, not at the top of the module.
"""

import pluggy

from gstack.protocols import ContractKind, GateResolver, HostAdapter, TriggerScorer

#: Version of these hooks and of :mod:`gstack.api`.
GSTACK_API = 1

#: Entry-point group of each hook.
GROUPS = {
    "gstack.contract_kinds": "gstack_contract_kinds",
    "gstack.trigger_scorers": "gstack_trigger_scorers",
    "gstack.gate_resolvers": "gstack_gate_resolvers",
    "gstack.host_adapters": "gstack_host_adapters",
}

hookspec = pluggy.HookspecMarker("gstack")


@hookspec
def gstack_contract_kinds() -> list[ContractKind]:  # type: ignore[empty-body]
    """Kinds of contract item that this plug-in knows how to check.

    When: a contract that names the kind is validated, and each time such an item is checked (the stop hook,
    ``gstack contract check`` and ``report``).
    Return: objects with ``name`` (what an item's ``kind:`` says), ``fields``, ``check``, ``fix`` and ``summary``.
    Combined: a registry by name; a second owner of a name is refused and both distributions are reported.
    Failing: a kind that raises, prints, exits or hangs "can't tell": the stop is allowed, the item isn't counted.
    """


@hookspec
def gstack_trigger_scorers() -> list[TriggerScorer]:  # type: ignore[empty-body]
    """Scorers that turn a prompt and the skills' triggers into scores.

    When: ``prepare`` when the set of skills changed (its result is stored), ``score`` on every prompt.
    Return: objects with ``name``, ``prepare(skills)`` and ``score(prompt, index)``.
    Combined: the one that the key ``route_scorer`` names decides; those in ``route_shadow_scorers`` run as
    well and are only logged.
    Failing: no hint, ``no-route reason=scorer-error`` in the log.
    """


@hookspec
def gstack_gate_resolvers() -> list[GateResolver]:  # type: ignore[empty-body]
    """Resolvers that decide whether a skill, subagent or typed command may be used.

    When: on each such use, and by ``gstack gate --skill``.
    Return: objects with ``name`` and ``decide(invocation, context)``, which gives a Decision or None (no opinion).
    Combined: all are asked, the most restrictive answer wins; the stale floor and the cap on
    commands come after, in the core.
    Failing: it is reported and left out; what the others say stands.
    """


@hookspec
def gstack_host_adapters() -> list[HostAdapter]:  # type: ignore[empty-body]
    """Adapters for the coding agents that run gstack's hooks.

    When: the registered command names the host; only that adapter is asked.
    Return: objects as :class:`gstack.protocols.HostAdapter` describes them.
    Combined: a registry by ``id``; a second owner of an id is refused and both distributions are reported.
    Failing: the hook prints nothing and exits 0.
    """
