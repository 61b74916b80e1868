"""For all tests: gevent patches Python's sockets before anything has imported them."""

import pyinfra_cli  # noqa: F401  its import patches, as in every run of pyinfra
