#!/bin/sh
# Copies programs, the shared libraries they are linked to, the libraries that
# they load by name while running, and the certificates of the public
# authorities into a tree of their own, with what Debian says of the packages
# they are from: their licences, and their state where scanners for known flaws
# look for it. None of them runs: they may be for another architecture.
# usage: collect.sh FROM DIR PROGRAM...
# FROM is what unpack.sh made.
set -eu
from=$1/root known=$1 dir=$2
shift 2

# The directories in which the programs look, and the one that HTCondor's name themselves.
places='usr/lib/*-linux-gnu usr/lib/*-linux-gnu/condor usr/lib usr/lib64'
cd "$from"
library() {
	# shellcheck disable=SC2086 # patterns
	for place in $places; do
		[ ! -e "$place/$1" ] || { echo "$place/$1" && return; }
	done
	echo "no package has $1" >&2
	return 1
}

todo=
for name; do
	# Kerberos' programs get their names by links that are made at installation.
	[ -e "usr/bin/$name" ] || name=$name.mit
	todo="$todo usr/bin/$name"
done
# HTCondor opens the libraries of Kerberos, TLS and SciTokens by name when it authenticates.
for name in krb5 krb5support k5crypto com_err gssapi_krb5 keyutils ssl crypto SciTokens; do
	for file in usr/lib/*-linux-gnu/lib"$name".so.*; do
		soname=$(readelf -d "$file" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
		todo="$todo $(library "$soname")"
	done
done

files=
while [ -n "$todo" ]; do
	# shellcheck disable=SC2086 # lists of paths without spaces
	set -- $todo
	file=$1
	shift
	todo=$*
	to=$dir/${file%.mit}
	[ ! -e "$to" ] || continue
	real=$(realpath "$file")
	[ "${real#"$from"/}" != "$real" ] || { echo "$file leads out of the tree, to $real" >&2 && exit 1; }
	mkdir -p "${to%/*}"
	cp -L "$file" "$to"
	files="$files ${real#"$from"/}"
	# The loader is named by programs below, by the path that it must have.
	for name in $(readelf -d "$file" | sed -n '/\[ld-linux/d; s/.*(NEEDED).*\[\(.*\)\]/\1/p'); do
		needed=$(library "$name")
		todo="$todo $needed"
	done
	loader=$(readelf -l "$file" | sed -n 's/.*program interpreter: \/\(.*\)\]/\1/p')
	[ -z "$loader" ] || todo="$todo usr/${loader#usr/}"
done
# Debian's /lib is a link to /usr/lib.
for link in lib lib64 bin; do
	[ ! -d "$dir/usr/$link" ] || ln -s "usr/$link" "$dir/$link"
done

mkdir -p "$dir/etc/ssl/certs" "$dir/tmp" "$dir/var/lib/dpkg/status.d"
cat usr/share/ca-certificates/mozilla/*.crt >"$dir/etc/ssl/certs/ca-certificates.crt"
for package in ca-certificates $(cd "$known/files" && for file in $files; do grep -lxF "./$file" -- * ||
	echo "no package has $file" >&2; done | sort -u); do
	cp "$known/packages/$package" "$dir/var/lib/dpkg/status.d/"
	mkdir -p "$dir/usr/share/doc/$package"
	cp -L "usr/share/doc/$package/copyright" "$dir/usr/share/doc/$package/"
done

chmod 1777 "$dir/tmp"
cp -L etc/os-release "$dir/etc/"
printf 'hosts: files dns\n' >"$dir/etc/nsswitch.conf"
