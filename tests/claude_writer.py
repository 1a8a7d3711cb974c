"""Any session that could be written, damage included, for property tests of Claude Code's reader."""

import json
import random
from typing import Any

from claude_records import Records, notification


class Writer:
    """Turns a list of drawn steps into the bytes of a transcript."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.session = Records()
        self.lines: list[bytes] = []
        self.done = 0
        self.open: list[str] = []
        self.copied = False

    def step(self, name: str) -> None:
        getattr(self, name)()
        self.copied = self.copied and name in DAMAGE
        for record in self.session.all[self.done :]:
            self.lines.append(self.line(record))
        self.done = len(self.session.all)

    def line(self, record: dict[str, Any]) -> bytes:
        spaced = self.rng.random() < 0.2
        text = json.dumps(record, ensure_ascii=self.rng.random() < 0.3, separators=None if spaced else (",", ":"))
        if self.rng.random() < 0.05:
            text = text.replace("/", "\\/").replace("<", "\\u003c")
        if self.rng.random() < 0.03:
            text = (
                text.replace("nvestigate", "\\u006evestigate")
                .replace('"Ski', '"\\u0053ki')
                .replace("ILL.m", "ILL\\u002em")
            )
        return text.encode("utf-8", "surrogatepass") + b"\n"

    # steps ---------------------------------------------------------------------------------------

    def prompt(self) -> None:
        self.session.prompt(self.rng.choice(["go on", "/etc/hosts?", "é✓ \ud83d", "[Request interrupted by user]"]))

    def typed(self) -> None:
        self.session.typed(self.rng.choice(["investigate", "acme:review", "review"]), self.rng.choice(["", "a/b"]))

    def skill(self) -> None:
        self.session.skill(self.rng.choice(["investigate", "review", "/acme:review"]))

    def bad_skill(self) -> None:
        self.session.tool(
            "Skill", {"skill": "investigate"}, "<tool_use_error>Unknown skill</tool_use_error>", error=True
        )

    def open_skill(self) -> None:
        self.open.append(self.session.call("Skill", {"skill": self.rng.choice(["investigate", "review"])}))

    def parallel(self) -> None:
        """Calls before and after a Skill call in one message, results in another order."""
        one, two = self.session.call("Bash", {"command": "1"}), self.session.call("Skill", {"skill": "investigate"})
        three = self.session.call("Read", {"file_path": "/x"})
        for ident in self.rng.sample([one, two, three], 3):
            self.session.result(ident, "out")

    def close(self) -> None:
        if self.open:
            self.session.result(self.open.pop(0), "late", error=self.rng.random() < 0.3)

    def read(self) -> None:
        path = self.rng.choice(
            ["/h/skills/investigate/SKILL.md", "/src/investigate/SKILL.md", "/h/skills/review/SKILL.md"]
        )
        value = {"type": "text", "file": {"filePath": path}}
        error = self.rng.random() < 0.2
        self.session.tool("Read", {"file_path": path}, "text", "Error: x" if error else value, error=error)

    def bash(self) -> None:
        self.session.bash(
            "pytest", self.rng.choice(['{"type":"text"}', "é" * 90, '"},{"type":"x"}]},"uuid":"', "\\", ""])
        )

    def long_bash(self) -> None:
        """A result of the kind that a search passes over."""
        marks = [
            '"Skill"',
            '{"type":"assistant"',
            "<command-message>review</command-message>",
            "SKILL_CONTRACT_UNMET x ",
        ]
        self.session.bash("make", "word " * self.rng.choice([500, 900]) + self.rng.choice(marks))

    def failed_bash(self) -> None:
        self.session.tool("Bash", {"command": "x"}, "Exit code 1\nno", "Error: Exit code 1", error=True)

    def edit(self) -> None:
        given = {"file_path": self.rng.choice(["/a", "C:\\a", "/é"]), "old_string": "x" * self.rng.choice([1, 900])}
        self.session.tool("Edit", given, "The file has been updated.", {"filePath": "/a", "originalFile": "}{" * 9})

    def says(self) -> None:
        self.session.says(
            self.rng.choice(["STATUS: DONE", "<command-name>/investigate</command-name>", '"Skill" SKILL.md'])
        )

    def said_more(self) -> None:
        self.session.says("more", ident="same")

    def agent(self) -> None:
        number = self.session.count
        self.session.tool("Agent", {"prompt": "x"}, "launched", {"status": "async_launched", "agentId": f"a{number}"})
        self.session.user(notification(f"a{number}"))

    def queued(self) -> None:
        self.session.attachment("queued_command", prompt="also", commandMode="prompt")

    def blocked(self) -> None:
        self.session.user("Stop hook feedback:\nSKILL_CONTRACT_UNMET investigate", isMeta=True)

    def turn_end(self) -> None:
        self.session.system("turn_duration")

    def compact(self) -> None:
        self.session.system("compact_boundary")
        self.session.user("This session is being continued /investigate", isCompactSummary=True)

    def side(self) -> None:
        self.session.call("Skill", {"skill": "investigate"}, side=True, agentId="a1")

    def progress(self) -> None:
        data = {"type": self.rng.choice(["hook_progress", "agent_progress"]), "agentId": "a1"}
        inner = {"type": "assistant", "message": {"content": [{"type": "text", "text": "below"}]}}
        self.session.conversation({"type": "progress", "data": {**data, "message": inner}}, {})

    def dull(self) -> None:
        self.session.add({"type": "last-prompt", "lastPrompt": "/investigate"})
        self.session.attachment("skill_listing", content="- investigate: SKILL.md")

    def untimed(self) -> None:
        del self.session.says("no time")["timestamp"]

    def nameless(self) -> None:
        del self.session.says("no id")["uuid"]

    # damage --------------------------------------------------------------------------------------

    def copy(self) -> None:
        """The same record again, as after a resume; never a stretch of several."""
        if self.lines and not self.copied:
            self.lines.append(self.rng.choice(self.lines))
            self.copied = True

    def double(self) -> None:
        """A result again, in a new record."""
        results = [r for r in self.session.all if isinstance(r.get("message", {}).get("content"), list)]
        refs = [b["tool_use_id"] for r in results for b in r["message"]["content"] if "tool_use_id" in b]
        if refs:
            self.session.result(self.rng.choice(refs), "again")

    def glue(self) -> None:
        """A lost newline after a record (behind other text, no record is found again)."""
        if self.lines and self.lines[-1].startswith(b'{"parentUuid"'):
            self.lines[-1] = self.lines[-1].rstrip(b"\n")

    def breaks(self) -> None:
        """A record that broke off, with or without a newline after it."""
        if self.lines:
            line = self.rng.choice(self.lines)
            self.lines.append(line[: self.rng.randrange(len(line) + 1)].rstrip(b"\n") + self.rng.choice([b"\n", b""]))

    def holes(self) -> None:
        self.lines.append(b"\0" * self.rng.choice([1, 50]) + self.rng.choice([b"\n", b""]))

    def noise(self) -> None:
        self.lines.append(
            self.rng.choice([b"[1]\n", b"x\n", b"\n", b"{}\n", b'{"type":3}\n', b"\xff\xfe\n", b'"Skill"\n'])
        )


DAMAGE = ("copy", "glue", "breaks", "holes", "noise", "dull", "progress")
STEPS = [name for name in vars(Writer) if not name.startswith("_") and name not in ("step", "line")]


def written(seed: int, steps: list[str]) -> bytes:
    writer = Writer(random.Random(seed))
    for name in steps:
        writer.step(name)
    return b"".join(writer.lines)
