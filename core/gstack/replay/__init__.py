"""What the hooks would have done on sessions that already lie on this machine. Cold.

:mod:`~gstack.replay.engine` takes transcripts through worker processes, :mod:`~gstack.replay.session` replays one of
them with the hooks' own decisions, :mod:`~gstack.replay.report` adds up. ``gstack replay`` and the commands of
``gstack route`` that look at history stand on it. Nothing is written but a checkpoint, which goes at the end.
"""
