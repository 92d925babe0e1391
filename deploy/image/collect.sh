#!/bin/sh
# Copies programs, the shared libraries they are linked to, the libraries that
# they load by name while running, and the certificates of the public
# authorities into a tree of their own, with what Debian says of the packages
# they are from: their licences, and their state where scanners for known flaws
# look for it.
# usage: collect.sh DIR PROGRAM...
set -eu
dir=$1
shift

programs=$(for name; do command -v "$name"; done)

# HTCondor opens the libraries of Kerberos, TLS and SciTokens by name when it authenticates.
loaded=$(ldconfig -p | sed -n 's/.* => \(.*\/lib\(krb5\|krb5support\|k5crypto\|com_err\|gssapi_krb5\|keyutils\|ssl\|crypto\|SciTokens\)\.so\..*\)/\1/p')

# Debian's /lib is a link to /usr/lib; the copy must not turn it into a directory.
# shellcheck disable=SC2086 # lists of paths without spaces
files=$({
	printf '%s\n' $programs $loaded
	ldd $programs $loaded | sed -n 's/^\t\(.* => \)\{0,1\}\(\/[^ ]*\) (.*/\2/p'
} | sed 's#^/\(lib\|lib64\|bin\)/#/usr/\1/#' | sort -u)
# shellcheck disable=SC2086
cp --parents -L -t "$dir" $files
for link in lib lib64 bin; do
	[ ! -d "$dir/usr/$link" ] || ln -s "usr/$link" "$dir/$link"
done

cp --parents /etc/ssl/certs/ca-certificates.crt "$dir"

# A package may know a file by the name that it had before /lib became a link.
for file in $files; do
	real=$(readlink -f "$file")
	dpkg -S "$real" "${real#/usr}" 2>/dev/null || echo "no package has $file" >&2
done | sed 's/:.*//' | sort -u >/packages
# This file is made at installation: no package has it.
echo ca-certificates >>/packages
mkdir -p "$dir/var/lib/dpkg/status.d"
while read -r package; do
	dpkg-query -s "$package" >"$dir/var/lib/dpkg/status.d/$package"
	cp --parents -L -t "$dir" "/usr/share/doc/$package/copyright"
done </packages

mkdir -p "$dir/etc" "$dir/tmp"
chmod 1777 "$dir/tmp"
cp --parents -L -t "$dir" /etc/os-release
printf 'hosts: files dns\n' >"$dir/etc/nsswitch.conf"
