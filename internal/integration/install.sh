#!/bin/sh
# Installs the programs that the tests call, if they're missing. Run it as root on Debian.
# It doesn't install servers: package engine unpacks those by itself.
set -eu

missing=
# need adds the packages $1 if the command after them fails.
need() {
	packages=$1
	shift
	"$@" >/dev/null 2>&1 || missing="$missing $packages"
}
need nodejs node --version
need npm npm --version
need default-jdk-headless javac --version
need python3 python3 --version
need php-cli php --version
need curl curl --version
need "chromium fonts-dejavu-core" chromium --version
need systemd systemd-analyze --version
test -n "$missing" || exit 0

echo "== install$missing"
export DEBIAN_FRONTEND=noninteractive
apt-get -q update
# shellcheck disable=SC2086 # each word is a package
apt-get -q --yes --no-install-recommends install $missing
