"""The gate: whether a skill, subagent or typed command may be used."""
