#!/bin/sh
# Copies programs, the shared libraries they are linked to, and the libraries
# that they load by name while running, into a tree of their own.
# usage: collect.sh DIR PROGRAM...
set -eu
dir=$1
shift

programs=$(for name; do command -v "$name"; done)

# HTCondor opens the Kerberos libraries by name when it authenticates.
loaded=$(ldconfig -p | sed -n 's/.* => \(.*\/lib\(krb5\|krb5support\|k5crypto\|com_err\|gssapi_krb5\|keyutils\)\.so\..*\)/\1/p')

# Debian's /lib is a link to /usr/lib; the copy must not turn it into a directory.
# shellcheck disable=SC2086 # lists of paths without spaces
{
	printf '%s\n' $programs $loaded
	ldd $programs $loaded | sed -n 's/^\t\(.* => \)\{0,1\}\(\/[^ ]*\) (.*/\2/p'
} | sed 's#^/\(lib\|lib64\|bin\)/#/usr/\1/#' | sort -u | xargs cp --parents -L -t "$dir"

for link in lib lib64 bin; do ln -s "usr/$link" "$dir/$link"; done
mkdir -p "$dir/etc" "$dir/tmp"
chmod 1777 "$dir/tmp"
printf 'hosts: files dns\n' >"$dir/etc/nsswitch.conf"
