"""The contract kind ``vendor.file_exists``: an output file is there, and was written after the skill was loaded.

The stop hook imports this module when a contract names the kind: import what is slow where it is used.
"""

from gstack.api import CANNOT_TELL, MET, MISSING, Field, Verdict, hookimpl


class FileExists:
    """One object a kind; gstack asks it, and it keeps nothing between two questions."""

    name = "vendor.file_exists"
    fields = (Field("path", required=True, help="the file, relative to the session's folder"),)

    def check(self, item, run):
        """Judge an item on a run: what happened since the skill was loaded."""
        import os

        path = os.path.expanduser(item.fields["path"])
        if not os.path.isabs(path):
            if run.cwd is None:
                return Verdict(CANNOT_TELL, "the session's folder isn't known")
            path = os.path.join(run.cwd, path)
        if not os.path.isfile(path):
            return Verdict(MISSING, f"there is no file {item.fields['path']}")
        if run.loaded_at is None:
            return Verdict(CANNOT_TELL, "the host doesn't say when the skill was loaded")
        if os.path.getmtime(path) < run.loaded_at:
            return Verdict(MISSING, f"{item.fields['path']} is older than this run of {run.skill}")
        return Verdict(MET)

    def fix(self, item):
        """The action that the block text names: an imperative, without a full stop."""
        return f"write {item.fields['path']}"

    def summary(self, item):
        """The item as a noun phrase, for the routing hint."""
        return f"the file {item.fields['path']}"


@hookimpl
def gstack_contract_kinds():
    """What the entry point's module is asked for."""
    return [FileExists()]
