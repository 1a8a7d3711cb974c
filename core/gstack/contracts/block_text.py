"""The one line that a held stop shows the model (contracts C5).

Hot: written by the stop hook, so builtins only. The off switch is for people: this text never mentions it.
"""

import sys

from gstack.contracts.runs import BLOCK_WORD
from gstack.lowlevel import POSIX, is_file, join, parent
from gstack.plan import plugin_failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gstack.api import Item
    from gstack.contracts.check import Call
    from gstack.contracts.schema import Contract
    from gstack.protocols import ContractKind

#: The command that the text names.
COMMAND = "gstack-skill-contract"


def block_text(
    skill: str,
    contract: "Contract",
    missing: "Collection[str]",
    kinds: "Mapping[str, ContractKind]",
    call: "Call",
    command: str,
) -> str:
    """The line for a run of ``skill`` that lacks the items ``missing``; ``command`` is the waive command's path."""
    items = [item for item in contract.items if item.id in missing]
    fixes = "; ".join([f"{item.id}: {fix_of(item, kinds, call)}" for item in items])
    return (
        f"{BLOCK_WORD} {skill} (contract v{contract.version}): missing {', '.join([item.id for item in items])}. "
        f"Fix: {fixes}. If an item truly does not apply, run {quoted(command)} waive <item> "
        '--reason "<why>" (this session only; counted as a miss for follow). This blocks once.'
    )


def fix_of(item: "Item", kinds: "Mapping[str, ContractKind]", call: "Call") -> str:
    """What to do about a missing item, on one line without a full stop: the pack author's words, else the kind's."""
    said: object = item.fix
    if not said:
        kind = kinds[item.kind]
        try:
            said = call(kind, kind.fix, item)
        except plugin_failed():
            said = ""
    text = " ".join(said.split()) if isinstance(said, str) else ""
    return text.rstrip(".") or "produce what the skill asks for"


def quoted(path: str) -> str:
    """``path`` as one word of a POSIX shell."""
    return "'" + path.replace("'", "'\\''") + "'"


def waive_command(launcher_dir: "str | None") -> str:
    """The path of the installed command: setup's launcher, else the script beside this Python, else its bare name."""
    name = COMMAND if POSIX else COMMAND + ".exe"
    folders = [launcher_dir or "", parent(sys.executable or ""), join(sys.prefix, "bin" if POSIX else "Scripts")]
    for folder in folders:
        if folder and folder != "." and is_file(join(folder, name)):
            return join(folder, name)
    return COMMAND
