#!/bin/sh
# Builds the smallest Debian that apt works in, as a stand-in for the image of that name.
# usage: debian-base.sh DIR SUITE MIRROR [KEYRING]
# Runs as the init of its own mount and pid namespaces, so that ending it leaves neither mount nor process behind.
set -eu
dir=$1 suite=$2 mirror=$3 keyring=${4:-}

mount --make-rprivate /
mount -t proc proc /proc
debootstrap --variant=minbase ${keyring:+--keyring="$keyring"} "$suite" "$dir" "$mirror"
echo "deb $mirror $suite main" >"$dir/etc/apt/sources.list"

# The proxy and certificate settings of the host's apt hold for this apt too; a mirror may be a frozen snapshot.
apt-config dump | grep -iE '^Acquire::[a-z:]*(proxy|CAInfo|Verify)' >"$dir/etc/apt/apt.conf.d/10host" || true
echo 'Acquire::Check-Valid-Until "false"; Acquire::Retries "3";' >"$dir/etc/apt/apt.conf.d/20host"
ca=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
if [ -f "$ca" ]; then
	mkdir -p "$dir/etc/ssl/certs"
	cp -L "$ca" "$dir/etc/ssl/certs/ca-certificates.crt"
fi

printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
chmod 755 "$dir/usr/sbin/policy-rc.d"
# As in the images of this name: documentation stays away, licences stay.
cat >"$dir/etc/dpkg/dpkg.cfg.d/slim" <<-'EOF'
	force-unsafe-io
	path-exclude=/usr/share/doc/*
	path-include=/usr/share/doc/*/copyright
	path-exclude=/usr/share/man/*
	path-exclude=/usr/share/info/*
	path-exclude=/usr/share/locale/*
EOF
rm -rf "${dir:?}"/dev/* "$dir"/var/lib/apt/lists/* "$dir"/var/cache/apt/archives/*.deb
