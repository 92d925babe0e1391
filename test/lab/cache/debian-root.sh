#!/bin/sh
# Builds the Debian root that every lab shares read-only: HTCondor, apptainer, a KDC, etcd, servers of files, and the small tools.
# usage: debian-root.sh DIR SUITE CONDOR MIRROR [KEYRING]
# CONDOR is the major version of HTCondor that SUITE is expected to have.
# Runs as the init of its own mount and pid namespaces, so that ending it leaves neither mount nor process behind.
set -eu
dir=$1 suite=$2 condor=$3 mirror=$4 keyring=${5:-}

step() { echo "step $*"; }

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
rm "$dir/etc/apt/apt.conf.d/70debconf"
# apptainer is in no release of Debian, only in unstable.
cat >"$dir/etc/apt/sources.list" <<-EOF
	deb $mirror $suite main
	deb $mirror sid main
EOF
printf 'Package: *\nPin: release a=unstable\nPin-Priority: 100\n' >"$dir/etc/apt/preferences.d/unstable"

mount --rbind /dev "$dir/dev"
mount -t proc proc "$dir/proc"
in_root() { chroot "$dir" /usr/bin/env DEBIAN_FRONTEND=noninteractive LC_ALL=C "$@"; }

step "install HTCondor, the KDC, etcd, what a node needs, Prometheus, nginx, XRootD, VOMS, and tools"
in_root apt-get -q update
in_root apt-get -qq -y install condor krb5-user krb5-kdc krb5-admin-server sqlite3 etcd-server etcd-client \
	runc containernetworking-plugins iptables nginx prometheus xrootd-server xrootd-client voms-clients \
	curl wget busybox-static iproute2 procps squashfuse openssh-server
version=$(in_root condor_version | sed -n 's/^.CondorVersion: \([^ ]*\).*/\1/p')
case $version in
"$condor".*) step "HTCondor is $version" ;;
*) echo "Debian $suite has HTCondor $version and no longer $condor" && exit 1 ;;
esac
step "install apptainer"
in_root apt-get -qq -y install apptainer/sid

step "add accounts and the busybox image"
# robot is the account htcd submits as; htcd itself runs as somebody else; admin administers the queue.
uid=7000
for name in htcd robot alice admin; do
	in_root useradd --create-home --shell /bin/bash --uid $uid "$name"
	uid=$((uid + 1))
done
# The smallest image a job can start: a directory. The mount points are what apptainer binds over.
image=$dir/opt/image/busybox
mkdir -p "$image/bin" "$image/etc" "$image/tmp" "$image/proc" "$image/sys" "$image/dev" "$image/var/tmp" \
	"$image/home" "$image/root" "$image/srv"
cp "$dir/bin/busybox" "$image/bin/busybox"
in_root chroot /opt/image/busybox /bin/busybox --install -s /bin
echo 'root:x:0:0:root:/root:/bin/sh' >"$image/etc/passwd"
echo 'root:x:0:' >"$image/etc/group"
: >"$image/etc/resolv.conf"
: >"$image/etc/hosts"

echo '127.0.0.1 localhost' >"$dir/etc/hosts"
in_root apt-get -q clean
# The images are made with the release's lists.
rm -rf "$dir"/var/lib/apt/lists/*_dists_sid_* "$dir"/var/log/*.log "$dir/usr/sbin/policy-rc.d"
umount -l "$dir/dev" "$dir/proc"
