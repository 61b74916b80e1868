wear() {
  install ufw
  ufw allow 22/tcp >/dev/null
  ufw --force enable >/dev/null
  works
}

works() {
  ufw status | grep -q '^Status: active' || fail "ufw is not active"
  ufw status | grep -q '^22/tcp *ALLOW' || fail "ufw does not let in SSH"
  iptables -S INPUT | grep -qx -- '-P INPUT DROP' || fail "what no rule lets in is not dropped"
}

off() {
  ufw --force disable >/dev/null
  apt-get -qq -y purge ufw >/dev/null
  rm -rf /etc/ufw
}
