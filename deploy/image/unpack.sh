#!/bin/sh
# Fetches Debian packages and all that they depend on, for an architecture that need not be this machine's, and unpacks
# them into one tree. Nothing of them runs.
# usage: unpack.sh ARCHITECTURE DIR PACKAGE...
# An empty ARCHITECTURE is this machine's. DIR gets root, the tree, and for each package packages/NAME, its paragraph in dpkg's
# list, and files/NAME, what is in it.
set -eu
arch=${1:-$(dpkg --print-architecture)} dir=$2
shift 2

mkdir -p "$dir/root" "$dir/packages" "$dir/files" "$dir/state/lists/partial" "$dir/cache/archives/partial"
# With an empty list of installed packages apt resolves, and fetches, everything that is needed and nothing more.
: >"$dir/state/status"
apt() {
	apt-get -q -o "APT::Architecture=$arch" -o "APT::Architectures=$arch" -o "Dir::State=$dir/state" \
		-o "Dir::State::status=$dir/state/status" -o "Dir::Cache=$dir/cache" -o APT::Sandbox::User=root "$@"
}
apt update
# base-files has the links of the root directory, such as /lib.
apt install -y --download-only --no-install-recommends base-files "$@"
for deb in "$dir"/cache/archives/*.deb; do
	name=$(dpkg-deb -f "$deb" Package)
	dpkg-deb -f "$deb" | sed '1a Status: install ok installed' >"$dir/packages/$name"
	dpkg-deb --fsys-tarfile "$deb" | tar -C "$dir/root" -xv --no-same-owner --keep-directory-symlink >"$dir/files/$name"
done
rm -r "$dir/state" "$dir/cache"
