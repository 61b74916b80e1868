# A hardened server (CIS asks for umask 027 or stricter) whose messages are German.
wear() {
  install locales
  localedef -i de_DE -f UTF-8 de_DE.UTF-8
  echo LANG=de_DE.UTF-8 > /etc/default/locale
  echo 'session optional pam_umask.so umask=077' >> /etc/pam.d/common-session
}

works() {
  [ "$login_umask" = 0077 ] || fail "root's umask is $login_umask"
  [ "$login_lang" = de_DE.UTF-8 ] || fail "root's locale is $login_lang"
  output=$(LC_ALL='' LANG=$login_lang ls /absent 2>&1) && fail "/absent is there"
  case $output in *"nicht gefunden"*) ;; *) fail "ls says: $output" ;; esac
}
