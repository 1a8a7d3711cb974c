"""gstack makes coding agents use their skills: routing, contracts and a policy gate.

The hook imports this package on every prompt, so nothing is imported here.
Plug-in authors start at :mod:`gstack.hookspecs` and import from :mod:`gstack.api`.
"""

__version__ = "0.1.0"
