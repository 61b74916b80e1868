"""Network errors that may be over in a moment: worth another try before anything is called wrong.

The texts are those of curl 7.81 to 8.x (lib/strerror.c, lib/vtls, lib/cf-socket.c), apt 2.4 to 3.0
(methods/), and Go's net, crypto/tls and net/http, which Helm, containerd and Docker print.
"""

import re

PAUSES_S = (
    1,
    2,
    4,
    8,
    16,
    32,
)  # between tries: 63 s in all, besides what the tries themselves take

_TEXTS = (
    r"connection (was )?(reset|refused|timed out|aborted|closed)",
    r"(recv|send) failure",
    r"empty reply from server",
    r"could(n't| not) resolve",
    r"temporary failure (resolving|in name resolution)",
    r"no such host|server misbehaving",
    r"timed out|i/o timeout|(handshake|time-?out|deadline) (timeout|exceeded)",
    r"(failed|could not|unable) to? ?connect",
    r"(network is|host is) unreachable|no route to host",
    r"ssl_error_syscall|unexpected eof|\beof$",
    r"could not handshake: (error in the pull|the tls connection was non-properly)",
    r"gnutls, handshake failed: (error in the pull|the tls connection was non-properly)",
    r"transfer closed with|http/2 stream|stream error|goaway",
    r"error reading from server|connection failed",
    # too many requests, and all that a server or a proxy in between says of its own state
    r"(error|code|status|response|http/[\d.]+)[: ]+(408|425|429|5\d\d)\b",
    r"\b(429 too many requests|50[0234] [a-z -]*(error|gateway|unavailable|time-?out))",
    r"toomanyrequests",
)
_TRANSIENT = re.compile("|".join(_TEXTS), re.IGNORECASE)


def reason(output: str) -> str:
    """The last line of a program's output that tells such an error; "" when there is none.

    Refusals (HTTP 401, 403, 404, 407), wrong certificates and wrong keys are none.
    """
    lines = [line.strip() for line in output.splitlines()]
    return next((line for line in reversed(lines) if _TRANSIENT.search(line)), "")
