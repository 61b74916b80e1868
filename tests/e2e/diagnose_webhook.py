"""An admission webhook that answers, and takes no pod: a program of openssl and socat on cp1."""

from __future__ import annotations

import json

from tests.e2e.conftest import Lab
from tests.e2e.diagnose_faults import kubectl, on, steps

_PORT = 18443
_ANSWER = r"""#!/bin/sh
length=0
while IFS= read -r line; do
  line=$(printf %s "$line" | tr -d '\r')
  [ -n "$line" ] || break
  case $line in [Cc]ontent-[Ll]ength:*) length=$((${line#*:})) ;; esac
done
uid=$(head -c "$length" | grep -o '"uid":"[^"]*"' | head -n 1 | cut -d '"' -f 4)
status='"allowed":false,"status":{"message":"no pods without a ticket"}'
body='{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview",'
body="$body\"response\":{\"uid\":\"$uid\",$status}}"
printf 'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n'
printf 'Content-Length: %s\r\n\r\n%s' "${#body}" "$body"
"""
_SERVE = f"""cat >/root/answer <<'EOF'
{_ANSWER}EOF
chmod 755 /root/answer
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=deny \
  -addext subjectAltName=IP:127.0.0.1 -keyout /root/deny.key -out /root/deny.crt 2>/dev/null
cat /root/deny.key /root/deny.crt >/root/deny.pem
systemd-run -q --unit deny socat \
  OPENSSL-LISTEN:{_PORT},bind=127.0.0.1,fork,reuseaddr,cert=/root/deny.pem,verify=0 \
  EXEC:/root/answer
base64 -w 0 /root/deny.crt"""


def configuration(authority: str, namespace: str) -> str:
    """The webhook's configuration. + authority: its certificate, in base64"""
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    webhook = {
        "name": "deny.example.com",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "clientConfig": {"url": f"https://127.0.0.1:{_PORT}/", "caBundle": authority},
        "rules": [rule],
    }
    return json.dumps(
        {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": "ValidatingWebhookConfiguration",
            "metadata": {"name": "deny"},
            "webhooks": [webhook],
        }
    )


def deny_pods(lab: Lab) -> None:
    """Have a webhook take no pod of the namespace `denied`."""
    authority = lab.ssh("cp1", _SERVE).strip()
    lab.kubectl("apply", "-f", "-", stdin=configuration(authority, "denied"))


allow_pods = steps(
    kubectl("delete", "validatingwebhookconfiguration", "deny", "--ignore-not-found"),
    on("cp1", "systemctl stop deny; rm -f /root/deny.* /root/answer"),
)
