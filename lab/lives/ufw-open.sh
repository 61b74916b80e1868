# ufw with the table of ports in docs/servers.md: SSH from everywhere, the rest from nodes and pods.
wear() {
  install ufw
  ufw allow 22/tcp >/dev/null
  ufw allow from "$subnet" >/dev/null
  ufw allow from 10.244.0.0/16 >/dev/null
  ufw route allow from 10.244.0.0/16 >/dev/null
  ufw route allow to 10.244.0.0/16 >/dev/null
  ufw --force enable >/dev/null
  works
}

works() {
  ufw status | grep -q '^Status: active' || fail "ufw is not active"
  ufw status | grep -q '^22/tcp *ALLOW' || fail "ufw does not let in SSH"
  ufw status | grep -q "^Anywhere *ALLOW *$subnet" || fail "ufw does not let in the nodes"
  iptables -S INPUT | grep -qx -- '-P INPUT DROP' || fail "what no rule lets in is not dropped"
}
