"""A mail server that takes mail as a smarthost does: after STARTTLS, from one known user."""

from __future__ import annotations

import base64
import binascii
import hmac
import socketserver
import ssl
from collections.abc import Callable

from lab.alert_receivers import media
from lab.alert_receivers.media import Refused
from lab.alert_receivers.web import Journal, Secrets, say

_MAX_MAIL = 10 * 1024 * 1024  # bytes
_MAX_LINE = 4096


class Session(socketserver.StreamRequestHandler):
    """One connection (RFC 5321, 3207, 4954). A subclass has the class attributes set."""

    timeout = 60
    secrets: Secrets
    journal: Journal
    context: ssl.SSLContext

    def setup(self) -> None:
        super().setup()
        self.encrypted = self.known = False
        self.sender = ""
        self.recipients: list[str] = []

    def handle(self) -> None:
        commands: dict[str, Callable[[str], None]] = {
            "EHLO": self._ehlo,
            "HELO": lambda _: self._say("250 lab"),
            "STARTTLS": self._starttls,
            "AUTH": self._auth,
            "MAIL": self._mail,
            "RCPT": self._rcpt,
            "DATA": self._data,
            "RSET": self._reset,
            "NOOP": lambda _: self._say("250 ok"),
        }
        try:
            self._say("220 alerts.lab ESMTP (SIMULATED by the gpuboot lab)")
            while line := self._line():
                verb, _, rest = line.partition(" ")
                if verb.upper() == "QUIT":
                    self._say("221 bye")
                    return
                command = commands.get(verb.upper())
                if command is None:
                    self._say("500 unknown command")
                else:
                    command(rest.strip())
        except (OSError, ssl.SSLError) as error:
            say(self.client_address[0], f"SMTP: went away: {error}")

    def _say(self, *lines: str) -> None:
        self.wfile.write("".join(f"{line}\r\n" for line in lines).encode())
        if lines[-1][0] in "45":
            say(self.client_address[0], f"SMTP: {lines[-1]}")

    def _line(self) -> str:
        return self.rfile.readline(_MAX_LINE).decode(errors="replace").rstrip("\r\n")

    def _ehlo(self, _: str) -> None:
        offers = ["AUTH PLAIN LOGIN"] if self.encrypted else ["STARTTLS"]
        self._say("250-alerts.lab", *(f"250-{offer}" for offer in offers), "250 8BITMIME")

    def _starttls(self, _: str) -> None:
        if self.encrypted:
            self._say("503 already encrypted")
            return
        self._say("220 go ahead")
        self.request = self.context.wrap_socket(self.request, server_side=True)
        super().setup()
        self.encrypted = True

    def _auth(self, rest: str) -> None:
        if not self.encrypted:
            self._say("538 5.7.11 encryption required")
            return
        kind, _, initial = rest.partition(" ")
        try:
            if kind.upper() == "PLAIN":
                user, password = _decoded(initial or self._ask("")).split("\0")[1:]
            elif kind.upper() == "LOGIN":
                user = _decoded(initial or self._ask("Username:"))
                password = _decoded(self._ask("Password:"))
            else:
                self._say("504 5.5.4 unknown mechanism")
                return
        except ValueError:
            self._say("501 5.5.2 cannot decode")
            return
        expected = f"{self.secrets.user}\0{self.secrets.password}".encode()
        self.known = hmac.compare_digest(f"{user}\0{password}".encode(), expected)
        self._say("235 2.7.0 welcome" if self.known else "535 5.7.8 wrong user or password")

    def _ask(self, prompt: str) -> str:
        self._say(f"334 {base64.b64encode(prompt.encode()).decode()}")
        return self._line()

    def _mail(self, rest: str) -> None:
        if not self.encrypted:
            self._say("530 5.7.0 must issue a STARTTLS command first")
        elif not self.known:
            self._say("530 5.7.0 authentication required")
        else:
            self.sender, self.recipients = _address(rest, "FROM:"), []
            self._say("250 ok" if "@" in self.sender else "501 5.1.7 bad sender")

    def _rcpt(self, rest: str) -> None:
        address = _address(rest, "TO:")
        if not self.sender:
            self._say("503 MAIL first")
        elif "@" not in address:
            self._say("501 5.1.3 bad recipient")
        else:
            self.recipients.append(address)
            self._say("250 ok")

    def _data(self, _: str) -> None:
        if not self.recipients:
            self._say("503 RCPT first")
            return
        self._say("354 end with <CRLF>.<CRLF>")
        content = b""
        while (line := self.rfile.readline()) not in (b".\r\n", b""):
            content += line.removeprefix(b".")
            if len(content) > _MAX_MAIL:
                raise OSError("a mail of more than 10 MiB")
        try:
            self.journal.add(media.email(content, self.sender, self.recipients))
        except Refused as error:
            self._say(f"554 5.6.0 {error}")
        else:
            self._say("250 ok: taken")
        self.sender, self.recipients = "", []

    def _reset(self, _: str) -> None:
        self.sender, self.recipients = "", []
        self._say("250 ok")


def _decoded(text: str) -> str:
    try:
        return base64.b64decode(text, validate=True).decode()
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def _address(rest: str, word: str) -> str:
    """The address of `FROM:<a@b> SIZE=…`; "" when there is none."""
    if not rest.upper().startswith(word):
        return ""
    return rest[len(word) :].strip().partition(" ")[0].strip("<>")
