#!/usr/bin/env bash
# Installs etcd (Debian's package, unpacked) and Patroni (PyPI) into a folder that every user may read:
#
#   install.sh FOLDER
#
# PostgreSQL and Patroni refuse root, and the user that runs them reads no files under root's home. So Patroni is for
# the system's own Python.
set -euo pipefail
folder=$1
[ -e "$folder/ready" ] && exit 0
missing() { printf 'make cluster HA=1: missing: %s\n' "$*" >&2; exit 1; }
python=/usr/bin/python3
[ -x "$python" ] || missing "$python (Debian: python3)"
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || missing "PostgreSQL (Debian: postgresql)"
umask 022
mkdir -p "$folder/debian" "$folder/python"

if ! command -v etcd >/dev/null; then
  command -v apt-get >/dev/null && command -v dpkg-deb >/dev/null || missing "etcd on the path (it is unpacked from Debian's package where apt-get is)"
  echo "etcd-server from Debian, unpacked into $folder"
  (cd "$folder/debian" && apt-get download -q etcd-server) || missing "Debian's package etcd-server (apt-get update?)"
  dpkg-deb -x "$folder"/debian/etcd-server_*.deb "$folder/debian"
fi

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
pip=
for candidate in "$python" "python$version" python3; do
  if "$candidate" -m pip --version >/dev/null 2>&1 &&
    [ "$("$candidate" -c 'import sys; print("%d.%d" % sys.version_info[:2])')" = "$version" ]; then
    pip=$candidate
    break
  fi
done
[ -n "$pip" ] || missing "pip for Python $version (Debian: python3-pip)"
echo "Patroni 4.1.5 from PyPI, into $folder"
"$pip" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target "$folder/python" \
  'patroni[etcd3]==4.1.5' 'psycopg2-binary==2.9.*' || missing "Patroni and psycopg2-binary from PyPI"
chmod -R a+rX "$folder"
touch "$folder/ready"
