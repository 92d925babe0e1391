#!/bin/sh
# Builds a Debian root with Chromium, in which the tests of the page run it headless.
# usage: browser.sh DIR SUITE MIRROR [KEYRING]
# Runs as the init of its own mount and pid namespaces, so that ending it leaves neither mount nor process behind.
set -eu
dir=$1 suite=$2 mirror=$3 keyring=${4:-}

mount --make-rprivate /
mount -t proc proc /proc
mkdir -p "$dir/etc/dpkg/dpkg.cfg.d"
cat >"$dir/etc/dpkg/dpkg.cfg.d/lab" <<-'EOT'
	force-unsafe-io
	path-exclude=/usr/share/doc/*
	path-exclude=/usr/share/man/*
	path-exclude=/usr/share/info/*
	path-exclude=/usr/share/locale/*
EOT
debootstrap --variant=minbase ${keyring:+--keyring="$keyring"} "$suite" "$dir" "$mirror"

# The proxy and certificate settings of the host's apt hold for this apt too; a mirror may be a frozen snapshot.
apt-config dump | grep -iE '^Acquire::[a-z:]*(proxy|CAInfo|Verify)' >"$dir/etc/apt/apt.conf.d/10host" || true
ca=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
if [ -f "$ca" ]; then
	mkdir -p "$dir/etc/ssl/certs"
	cp -L "$ca" "$dir/etc/ssl/certs/ca-certificates.crt"
fi
cp -L /etc/resolv.conf "$dir/etc/resolv.conf"
printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
chmod 755 "$dir/usr/sbin/policy-rc.d"
cat >"$dir/etc/apt/apt.conf.d/20lab" <<-'EOT'
	APT::Install-Recommends "false";
	Acquire::Check-Valid-Until "false";
	Acquire::Languages "none";
	Acquire::Retries "3";
EOT
echo "deb $mirror $suite main" >"$dir/etc/apt/sources.list"
mount --rbind /dev "$dir/dev"
mount -t proc proc "$dir/proc"
in_root() { chroot "$dir" /usr/bin/env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }
in_root apt-get -q update
in_root apt-get -qq -y install chromium fonts-dejavu-core
in_root useradd --create-home --uid 7100 browser
echo '127.0.0.1 localhost' >"$dir/etc/hosts"
in_root apt-get -q clean
rm -rf "$dir"/var/lib/apt/lists/* "$dir"/var/log/*.log "$dir/usr/sbin/policy-rc.d"
umount -l "$dir/dev" "$dir/proc"
