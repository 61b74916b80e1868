wear() {
  install openntpd
}

works() {
  [ "$(dpkg-query -W -f '${db:Status-Abbrev}' openntpd)" = "ii " ] || fail "openntpd is gone"
  systemctl -q is-enabled openntpd || fail "openntpd does not start at boot"
}
