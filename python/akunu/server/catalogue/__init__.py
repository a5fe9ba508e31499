"""Which models a server has: named, discovered on this machine, downloaded for clients."""
