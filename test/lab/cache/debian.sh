#!/bin/sh
# What the scripts that build Debian roots begin with. It runs as the init of its own mount and pid namespaces, so that ending it leaves neither mount
# nor process behind.
set -eu

step() { echo "step $*"; }

# in_root runs a command in the root.
in_root() { chroot "$dir" /usr/bin/env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }

# begin makes the root $dir of the Debian $suite from $mirror, checked with $keyring if that is not empty, in which apt works.
begin() {
	mount --make-rprivate /
	mount -t proc proc /proc

	# Documentation is not wanted, not even that of the first packages.
	mkdir -p "$dir/etc/dpkg/dpkg.cfg.d"
	cat >"$dir/etc/dpkg/dpkg.cfg.d/lab" <<-'EOF'
		force-unsafe-io
		path-exclude=/usr/share/doc/*
		path-exclude=/usr/share/man/*
		path-exclude=/usr/share/info/*
		path-exclude=/usr/share/locale/*
	EOF

	step "bootstrap Debian $suite from $mirror"
	# The script of sid serves every release since, also one whose name is younger than the host's debootstrap.
	debootstrap --variant=minbase ${keyring:+--keyring="$keyring"} "$suite" "$dir" "$mirror" \
		/usr/share/debootstrap/scripts/sid

	# The proxy and certificate settings of the host's apt hold for this apt too, through files and the environment.
	apt-config dump | grep -iE '^Acquire::[a-z:]*(proxy|CAInfo|Verify)' >"$dir/etc/apt/apt.conf.d/10host" || true
	ca=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
	if [ -f "$ca" ]; then
		mkdir -p "$dir/etc/ssl/certs"
		cp -L "$ca" "$dir/etc/ssl/certs/ca-certificates.crt"
	fi
	cp -L /etc/resolv.conf "$dir/etc/resolv.conf"

	# Nothing may start while packages are unpacked; nobody is there to answer debconf's questions beforehand; a mirror may be a
	# frozen snapshot.
	printf '#!/bin/sh\nexit 101\n' >"$dir/usr/sbin/policy-rc.d"
	chmod 755 "$dir/usr/sbin/policy-rc.d"
	cat >"$dir/etc/apt/apt.conf.d/20lab" <<-'EOF'
		APT::Install-Recommends "false";
		Acquire::Check-Valid-Until "false";
		Acquire::Languages "none";
		Acquire::Retries "3";
	EOF
	rm -f "$dir/etc/apt/apt.conf.d/70debconf"
	echo "deb $mirror $suite main" >"$dir/etc/apt/sources.list"

	mount --rbind /dev "$dir/dev"
	mount -t proc proc "$dir/proc"
}

# end leaves only what a root needs when it is used.
end() {
	echo '127.0.0.1 localhost' >"$dir/etc/hosts"
	in_root apt-get -q clean
	rm -rf "$dir"/var/log/*.log "$dir/usr/sbin/policy-rc.d"
	umount -l "$dir/dev" "$dir/proc"
}

