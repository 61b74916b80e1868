# A Helm release as "key<TAB>value" lines; nothing when there is none. POSIX sh, changes nothing.
# Variables: KUBECONFIG, release, namespace. Parsed by deploys/facts/helm.py.
export LC_ALL=C KUBECONFIG PATH="/usr/local/bin:$PATH"
put() { printf '%s\t%s\n' "$1" "$2"; }
if [ -r "$KUBECONFIG" ] && command -v helm >/dev/null 2>&1; then
  # shellcheck disable=SC2154  # the fact sets them
  if answer=$(helm get metadata "$release" -n "$namespace" -o json 2>&1); then
    put metadata "$(printf '%s' "$answer" | tr '\n' ' ')"
    if values=$(helm get values "$release" -n "$namespace" -o json); then
      put values "$(printf '%s' "$values" | base64 -w 0)"
      put end ok
    fi
  else
    case $answer in
      *"not found"*) put end ok ;;
      *) put error "$(printf '%s' "$answer" | tr '\n\t' '  ' | cut -c 1-300)"; put end ok ;;
    esac
  fi
else
  put end ok
fi
