"""The value types of :mod:`gstack.api` that not every hook needs, one module for each extension point."""
