# Builds the Debian root that every lab shares read-only: HTCondor, apptainer, a KDC, etcd, servers of files, and the small tools. It comes after
# debian.sh.
# usage: debian-root.sh DIR SUITE CONDOR MIRROR [KEYRING]
# CONDOR is the major version of HTCondor that SUITE is expected to have.
# shellcheck shell=sh disable=SC2034 # of debian.sh
dir=$1 suite=$2 condor=$3 mirror=$4 keyring=${5:-}

begin
# apptainer is in no release of Debian, only in unstable.
echo "deb $mirror sid main" >>"$dir/etc/apt/sources.list"
printf 'Package: *\nPin: release a=unstable\nPin-Priority: 100\n' >"$dir/etc/apt/preferences.d/unstable"

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

# The images are made with the release's lists.
rm -rf "$dir"/var/lib/apt/lists/*_dists_sid_*
end
