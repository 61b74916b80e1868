"""Settings of log shipping: what Fluent Bit reads on the nodes, and where it sends it."""

from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from gpuboot.config.settings.base import Form, Label, Model, Url
from gpuboot.config.settings.secret import LocalFile, Secret

# part of a line of Fluent Bit's configuration, in which `$` would begin a variable
_Word = Annotated[str, Form(r"[A-Za-z0-9._@/|+-]+", "one word", "team-a")]


class Loki(Model):
    """Grafana Loki, which takes logs over HTTP."""

    url: Url = Field(
        description="Its address, such as `https://loki.example.org`; the path of its API, "
        "`/loki/api/v1/push`, is added."
    )
    tenant: _Word | None = Field(
        None, description="Sent as `X-Scope-OrgID`, which a Loki with several tenants asks for."
    )
    username: _Word | None = Field(None, description="Basic authentication.")
    password: Secret | None = Field(None, description="Basic authentication.")
    bearer_token: Secret | None = Field(None, description="Token, instead of name and password.")
    ca: LocalFile | None = Field(
        None, description="Who signs its certificate; default: the public authorities."
    )

    @model_validator(mode="after")
    def _one_way_in(self) -> Self:
        if (self.username is None) != (self.password is None):
            raise ValueError("username and password go together")
        if self.password is not None and self.bearer_token is not None:
            raise ValueError("give either a password or a bearer_token")
        if self.ca is not None and not self.url.startswith("https://"):
            raise ValueError("ca is for an address that begins with https://")
        return self


class Logs(Model):
    """Logs of pods, XIDs of the kernel and Kubernetes' Events, sent to Loki by Fluent Bit."""

    enabled: bool = Field(
        False,
        description="Ship logs (docs/applications.md); `False`: what gpuboot installed for it is "
        "taken away.",
    )
    loki: Loki | None = Field(None, description="Where they go; needed with `enabled`.")
    pods: bool = Field(True, description="Ship what containers write to their standard output.")
    exclude_namespaces: tuple[Label, ...] = Field(
        (), description="Namespaces whose containers' logs stay on the nodes."
    )
    values: dict[str, Any] = Field(
        {}, description="More chart values, merged over ours, of both releases."
    )

    @model_validator(mode="after")
    def _somewhere(self) -> Self:
        if self.enabled and self.loki is None:
            raise ValueError("logs.enabled needs logs.loki: where the logs go")
        return self
