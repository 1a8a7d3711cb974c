"""Work for the replay's engine, in a module of its own, so that spawned processes can import it."""

import os
import time
from typing import Any

from gstack.replay.engine import Job


class Sizes:
    """Gives each file's name and what it holds, with the process that read it."""

    def __init__(self, *, slow: float = 0.0, raises: str = "", kills: str = "") -> None:
        self.slow = slow
        self.raises = raises
        self.kills = kills

    def open(self) -> None:
        self.process = os.getpid()

    def do(self, job: Job) -> Any:
        name = os.path.basename(job.path)
        if self.raises and name == self.raises:
            raise RuntimeError("odd\nfile")
        if self.kills and name.startswith(self.kills):
            os._exit(9)
        time.sleep(self.slow)
        return name, self.process, "ok"

    def failed(self, job: Job, why: str) -> Any:
        return os.path.basename(job.path), 0, why


class CantOpen(Sizes):
    def open(self) -> None:
        os._exit(3)
