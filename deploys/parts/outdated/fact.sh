#!/bin/sh
# What the package and chart repositories of this host serve now, and what is installed. Changes
# nothing: apt and dnf keep their indexes in a temporary folder. Prints "package NAME VERSION",
# "chart NAME JSON" as Helm finds it, "silent NAME" for a repository that did not answer,
# "installed NAME VERSION", "release CHART" of Helm's releases, "image REFERENCE" of the cluster's
# pods, and "repository_key NAME FINGERPRINT END" by a function of repository_keys.sh.
# Variables: packages (names), next (the next Kubernetes minor), charts (lines "NAME URL"),
# sources (apt's folder), helm (its program), kubeconfig (the cluster's, where the host has it).
# shellcheck disable=SC2154
export LC_ALL=C
eval "$(cat)"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
chmod 755 "$work" # apt reads as a user of its own

# served_by_apt FILE : the versions that the one repository of a sources file has
served_by_apt() {
  rm -rf "$work/apt" && mkdir -p "$work/apt/lists" "$work/apt/cache" "$work/apt/parts"
  cp "$1" "$work/apt/parts/"
  set -- -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/apt/parts" \
    -o Dir::State::lists="$work/apt/lists" -o Dir::Cache="$work/apt/cache" -o Acquire::Retries=2
  apt-get -q "$@" update >/dev/null 2>&1 || return 1
  # shellcheck disable=SC2086
  apt-cache "$@" madison $packages 2>/dev/null | awk '{ print "package", $1, $3 }'
}

if command -v apt-get >/dev/null; then
  for file in "$sources"/gpuboot-*.sources; do
    [ -e "$file" ] || continue
    served_by_apt "$file" || { name=${file##*/gpuboot-}; echo "silent ${name%.sources}"; }
  done
  file=$sources/gpuboot-kubernetes.sources
  if [ -e "$file" ]; then
    # a minor that is not out yet has no repository
    sed "s|/v[0-9.]*/deb/|/v$next/deb/|" "$file" >"$work/gpuboot-next.sources"
    served_by_apt "$work/gpuboot-next.sources" || echo "silent kubernetes-$next"
  fi
else
  # shellcheck disable=SC2086
  dnf -q --setopt=cachedir="$work/dnf" --disablerepo='*' --enablerepo='gpuboot-*' repoquery \
    --showduplicates --qf 'package %{name} %{version}-%{release}' $packages 2>/dev/null ||
    echo "silent dnf"
fi

export HELM_REPOSITORY_CONFIG="$work/helm.yaml" HELM_REPOSITORY_CACHE="$work/helm"
echo "$charts" | while read -r chart url; do
  [ -n "$chart" ] || continue
  if "$helm" repo add "$chart" "$url" >/dev/null 2>&1; then
    echo "chart $chart $("$helm" search repo "$chart/$chart" --versions -o json | tr -d '\n')"
  else
    echo "silent $chart"
  fi
done

# shellcheck disable=SC2086
if command -v dpkg-query >/dev/null; then
  dpkg-query -W -f '${db:Status-Status} ${Package} ${Version}\n' $packages 2>/dev/null |
    grep '^installed '
else
  rpm -q --qf 'installed %{NAME} %{VERSION}-%{RELEASE}\n' $packages 2>/dev/null |
    grep '^installed '
fi
configured_keys | tr '\t' ' '
if [ -r "$kubeconfig" ]; then
  echo "installed helm $("$helm" version --template '{{ .Version }}' 2>/dev/null)"
  "$helm" --kubeconfig "$kubeconfig" list -A -o json 2>/dev/null | tr ',' '\n' |
    sed -n 's/.*"chart":"\([^"]*\)".*/release \1/p'
  kubectl --kubeconfig "$kubeconfig" --request-timeout=20s get pods -A -o \
    'jsonpath={range .items[*].spec.containers[*]}{.image}{"\n"}{end}' 2>/dev/null |
    sort -u | sed 's/^./image &/'
fi
echo "asked all"
