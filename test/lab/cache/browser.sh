# Builds a Debian root with Chromium, in which the tests of the page run it headless. It comes after debian.sh.
# usage: browser.sh DIR SUITE MIRROR [KEYRING]
# shellcheck shell=sh disable=SC2034 # of debian.sh
dir=$1 suite=$2 mirror=$3 keyring=${4:-}

begin
in_root apt-get -q update
in_root apt-get -qq -y install chromium fonts-dejavu-core
in_root useradd --create-home --uid 7100 browser
rm -rf "$dir"/var/lib/apt/lists/*
end
