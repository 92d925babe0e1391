#!/bin/sh
# Builds the layer of one small image of Debian packages, as a gzipped tar.
# usage: image.sh ROOT OUT PACKAGE...
# ROOT is the Debian root, whose apt and keys do the work; OUT is the layer's path on the host.
# Runs as the init of its own mount and pid namespaces, so that ending it leaves neither mount nor process behind.
set -eu
root=$1 out=$2
shift 2

mount --make-rprivate /
# Everything written lives in one directory beside the result, and is seen by the root as /mnt.
work=$(mktemp -d "$out.XXXXXX")
trap 'rm -rf "$work"' EXIT
mount --bind "$root" "$root"
mount -t proc proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$work" "$root/mnt"
mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/tree"
: >"$work/state/status"

in_root() { chroot "$root" /usr/bin/env DEBIAN_FRONTEND=noninteractive LC_ALL=C TMPDIR=/mnt "$@"; }
# With an empty list of installed packages apt resolves, and fetches, everything that is needed and nothing more.
apt() { in_root apt-get -qq -o Dir::State=/mnt/state -o Dir::State::status=/mnt/state/status \
	-o Dir::Cache=/mnt/cache -o APT::Sandbox::User=root -o Dir::Etc::sourcelist=/mnt/sources.list "$@"; }
# Nothing of an image comes from unstable.
grep -v ' sid ' "$root/etc/apt/sources.list" >"$work/sources.list"
# The root's lists may be older than the archive.
cp "$root"/var/lib/apt/lists/*_dists_* "$work/state/lists/"
download() { apt -y --download-only install base-files "$@"; }
download "$@" || { apt update && download "$@"; }
for deb in "$work"/cache/archives/*.deb; do
	in_root dpkg-deb -x "/mnt/cache/archives/${deb##*/}" /mnt/tree
done

tree=$work/tree
rm -rf "$tree"/usr/share/doc "$tree"/usr/share/man "$tree"/usr/share/info "$tree"/usr/share/locale \
	"$tree"/usr/share/lintian "$tree"/usr/lib/*/gconv "$tree"/usr/share/zoneinfo "$tree"/var/cache/*
# No maintainer script ran: these are the few things that they would have made.
ln -sf bash "$tree/usr/bin/sh"
[ ! -e "$tree/usr/bin/gawk" ] || ln -sf gawk "$tree/usr/bin/awk"
echo 'root:x:0:0:root:/root:/bin/bash' >"$tree/etc/passwd"
echo 'root:x:0:' >"$tree/etc/group"
: >"$tree/etc/resolv.conf"
: >"$tree/etc/hosts"
if [ -d "$tree/usr/share/ca-certificates" ]; then
	mkdir -p "$tree/etc/ssl/certs"
	cat "$tree"/usr/share/ca-certificates/mozilla/*.crt >"$tree/etc/ssl/certs/ca-certificates.crt"
fi
mkdir -p "$tree/proc" "$tree/sys" "$tree/dev" "$tree/tmp" "$tree/srv"
tar -C "$tree" --sort=name --owner=0 --group=0 --numeric-owner --use-compress-program='gzip -1' -cf "$out" .
