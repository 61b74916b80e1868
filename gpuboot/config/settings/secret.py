"""Where a secret comes from."""

from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from gpuboot.config.settings.base import Form, Model


def _path(value: str) -> str:
    if "://" in value or "\n" in value:
        raise ValueError("takes the path of a file that holds the secret, not the secret itself")
    return value


_KEY_OF_SECRET = Form(
    r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[-._a-zA-Z0-9]+", "NAME/KEY of a Secret", "slack/webhook"
)


class LocalFile(Model):
    """A file of the control machine. Its content is never part of the settings."""

    file: str = Field(description="On the control machine; its content goes where it is needed.")


class Secret(Model):
    """Where a secret comes from: one of the two. Its content is never part of the settings."""

    file: Annotated[str, AfterValidator(_path)] | None = Field(
        None, description="File on the control machine; its content goes to the cluster only."
    )
    secret: Annotated[str, _KEY_OF_SECRET] | None = Field(
        None,
        description="`name/key` of a Secret that is there already, in the monitoring namespace.",
    )

    @model_validator(mode="after")
    def _check_one_source(self) -> Self:
        if (self.file is None) == (self.secret is None):
            raise ValueError('takes either {"file": "PATH"} or {"secret": "NAME/KEY"}')
        return self
