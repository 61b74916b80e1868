"""Settings of alerts and of Alertmanager: what fires, and who gets it."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gpuboot.config.settings.base import Duration, Mail, Model, Period, Smarthost, Url
from gpuboot.config.settings.secret import Secret

Severity = Literal["critical", "warning", "info"]
# What an XID asks for; `gpuboot/monitoring/rules/xid.toml` gives each code one of them.
XidClass = Literal["reboot", "reset", "nvlink", "inspect", "application", "information", "context"]


class AlertOverride(Model):
    """What a site wants different about one alert."""

    enabled: bool = Field(True, description="`False`: this alert is not loaded.")
    severity: Severity | None = Field(
        None, description="Another severity, and so another receiver."
    )
    hold_for: Duration | None = Field(None, description="How long it must hold (`for`).")
    threshold: float | None = Field(
        None, description="The number it compares with; its runbook says which, and its unit."
    )


class Alerts(Model):
    """GPU and cluster alert rules."""

    enabled: bool = Field(
        True, description="`False`: no alert of ours; recorded series stay, dashboards read them."
    )
    rules: dict[str, AlertOverride] = Field({}, description="Alert name -> what is different.")
    xid: dict[int, XidClass] = Field({}, description="XID code -> class, over our table.")
    labels: dict[str, str] = Field({}, description="More labels of every alert.")
    runbooks: str = Field(
        "docs/runbooks",
        description="Where docs/runbooks is published, for the links in alerts: a URL.",
    )
    gpu_memory_near_full: tuple[str, ...] = Field(
        (), description="Namespaces in which full GPU memory is worth an alert."
    )


class PagerDuty(Model):
    """PagerDuty, by Events API v2."""

    routing_key: Secret = Field(description="Integration key of a service in PagerDuty.")
    url: Url = Field(
        "https://events.pagerduty.com/v2/enqueue", description="Where events are sent."
    )


class Slack(Model):
    """A Slack incoming webhook."""

    webhook: Secret = Field(description="The webhook's URL, which is a secret.")
    channel: str | None = Field(None, description="e.g. `#gpu`; default: the webhook's own.")


def _require_address(value: tuple[str, ...]) -> tuple[str, ...]:
    # not by min_length, which counts only the items that are right
    if not value:
        raise ValueError("takes at least one address")
    return value


class Email(Model):
    """E-mail by SMTP."""

    to: Annotated[tuple[Mail, ...], AfterValidator(_require_address)] = Field(
        description="Who gets the mails."
    )
    sender: Mail = Field(description="The mails' From.")
    smarthost: Smarthost = Field(description="`host:port`")
    username: str | None = Field(None, description="SMTP authentication.")
    password: Secret | None = Field(None, description="SMTP authentication.")
    require_tls: bool = Field(True, description="Send only after STARTTLS.")

    @model_validator(mode="after")
    def _check_credentials(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("give username and password, or neither")
        return self


class Watchdog(Model):
    """A dead-man's switch outside the cluster: it alarms when our heartbeat stops."""

    url: Secret = Field(description="Webhook URL that gets the alert Watchdog again and again.")
    interval: Period = Field("1m", description="How often it gets the alert.")


class Alertmanager(Model):
    """Receivers: critical alerts go to PagerDuty, warning to Slack, info by e-mail.

    A severity without a receiver goes to the next one below that is set; with none, alerts are
    only shown.
    """

    pagerduty: PagerDuty | None = Field(None, description="Receiver of critical alerts.")
    slack: Slack | None = Field(None, description="Receiver of warnings.")
    email: Email | None = Field(None, description="Receiver of alerts of severity info.")
    watchdog: Watchdog | None = Field(None, description="Dead-man's switch.")
    group_by: tuple[str, ...] = Field(
        ("alertname", "cluster", "node"),
        description="Alerts with the same values of these labels are one message.",
    )
    group_wait: Duration = Field(
        "30s", description="How long the first message of a group waits for more alerts."
    )
    group_interval: Period = Field(
        "5m", description="Least time between two messages of a group that changes."
    )
    repeat_interval: Period = Field(
        "12h",
        description="How often a message is repeated while its alerts fire; critical ones three "
        "times as often.",
    )
    ca_file: str | None = Field(
        None, description="PEM file on the control machine that signs the receivers' addresses."
    )
