"""Contracts: what a skill must have produced before it is done."""
