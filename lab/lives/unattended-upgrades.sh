wear() {
  install unattended-upgrades needrestart
  printf 'APT::Periodic::Update-Package-Lists "1";\nAPT::Periodic::Unattended-Upgrade "1";\n' \
    > /etc/apt/apt.conf.d/20auto-upgrades
  mkdir -p /etc/needrestart/conf.d
  # shellcheck disable=SC2016 # it is Perl
  echo '$nrconf{restart} = "a";' > /etc/needrestart/conf.d/site.conf
}

works() {
  unattended-upgrade --dry-run >/dev/null || fail "unattended-upgrade fails"
  apt-config dump | grep -q '^APT::Periodic::Unattended-Upgrade "1"' || fail "it is switched off"
  systemctl -q is-enabled apt-daily-upgrade.timer || fail "its timer is off"
  has /etc/needrestart/conf.d/site.conf restart
  needrestart -b >/dev/null || fail "needrestart fails"
}
