"""The host adapters that come with gstack, one folder each."""
