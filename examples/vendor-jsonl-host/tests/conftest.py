pytest_plugins = ["gstack.testing.fixtures"]
