"""How Ember, the small model inside the akunu package, is made: data, training, export, tests."""
