"""Real BMC simulators, and the tests of the shelf against them."""
