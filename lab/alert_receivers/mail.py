"""A mail server that takes mail as a smarthost does: after STARTTLS, from one known user."""

from __future__ import annotations

import hmac
import ssl
from typing import AnyStr

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session

from lab.alert_receivers import messages
from lab.alert_receivers.messages import RefusedError
from lab.alert_receivers.web import Journal, Secrets, say

_MAX_MAIL = 10 * 1024 * 1024  # bytes


class MailServer(Controller):
    """The server in a thread of its own, between `start()` and `stop()`.

    + port: a free one, not 0
    + context: with the certificate that STARTTLS shows
    """

    def __init__(
        self, address: str, port: int, context: ssl.SSLContext, secrets: Secrets, journal: Journal
    ) -> None:
        super().__init__(
            _Recorder(journal),
            hostname=address,
            port=port,
            server_hostname="alerts.lab",
            ident="ESMTP (SIMULATED by the gpuboot lab)",
            tls_context=context,
            require_starttls=True,
            auth_required=True,
            authenticator=_Authenticator(secrets),
            data_size_limit=_MAX_MAIL,
        )

    def factory(self) -> SMTP:
        return _LoggingSMTP(self.handler, **self.SMTP_kwargs)


class _LoggingSMTP(SMTP):
    # as most servers ask: Alertmanager's client knows these words only
    AuthLoginUsernameChallenge = "Username:"
    AuthLoginPasswordChallenge = "Password:"

    async def push(self, status: AnyStr) -> None:
        """Answer the client; what is refused goes to the process' log as well."""
        text = status if isinstance(status, str) else status.decode()
        if text[:1] in ("4", "5") and self.session is not None and self.session.peer is not None:
            say(self.session.peer[0], f"SMTP: {text}")
        await super().push(status)


class _Authenticator:
    def __init__(self, secrets: Secrets) -> None:
        self._expected = f"{secrets.user}\0{secrets.password}".encode()

    def __call__(
        self,
        server: SMTP,
        session: Session,
        envelope: Envelope,
        mechanism: str,
        login: LoginPassword,
    ) -> AuthResult:
        credentials = login.login + b"\0" + login.password
        # not handled: the server then says that user or password are wrong
        return AuthResult(success=hmac.compare_digest(credentials, self._expected), handled=False)


class _Recorder:
    """Takes mail by writing it to the journal."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    async def handle_RCPT(
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if "@" not in address:
            return "501 5.1.3 bad recipient"
        envelope.rcpt_tos.append(address)
        return "250 ok"

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:
        content = envelope.content
        if not isinstance(content, bytes) or "@" not in (envelope.mail_from or ""):
            return "554 5.1.7 bad sender"
        try:
            self._journal.add(messages.email(content, str(envelope.mail_from), envelope.rcpt_tos))
        except RefusedError as error:
            return f"554 5.6.0 {error}"
        return "250 ok: taken"
