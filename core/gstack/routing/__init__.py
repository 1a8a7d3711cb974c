"""Routing: which skill a prompt fits, and the hint that says so."""
