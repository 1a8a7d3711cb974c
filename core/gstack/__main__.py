"""``python -m gstack`` is ``gstack``."""

from gstack.cli import main

raise SystemExit(main())
