"""For all tests: what pyinfra's command line patches for gevent stays as Python has it.

Under gevent each start of a program copies the process that starts it: of thousands of tests, that
would be every third second. Real runs, which tests/fork_server.py starts, are patched.
"""

from gevent import monkey

monkey.patch_all = lambda **_: True

import pyinfra_cli  # noqa: E402, F401  its import patches
