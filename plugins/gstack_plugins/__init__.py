"""The contract kinds, trigger scorer and gate resolver that come with gstack, one folder each."""
