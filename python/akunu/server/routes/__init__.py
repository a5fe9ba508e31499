"""The routes, a module for each family."""
