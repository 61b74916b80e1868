"""How a run with nothing to do grows with its hosts, up to more than one computer can boot."""
