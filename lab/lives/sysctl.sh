# A file of the site's that sorts after 90-: it turns off what Kubernetes needs, and has a setting
# that nobody else makes.
file=/etc/sysctl.d/99-site.conf

wear() {
  cat > $file <<'END'
# hardening
net.ipv4.ip_forward = 0
net.ipv4.conf.all.forwarding = 0
net.ipv4.tcp_keepalive_time = 600
END
  sysctl -q -p $file
}

works() {
  has $file "net.ipv4.tcp_keepalive_time = 600"
  [ "$(sysctl -n net.ipv4.tcp_keepalive_time)" = 600 ] || fail "tcp_keepalive_time is not 600"
}
