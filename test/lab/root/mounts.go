package root

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// enterNew replaces this process's root with the planned one. It runs as the first process of new namespaces.
func enterNew(plan Plan) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	top := plan.Top
	if err := mount("tmpfs", top, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	at := func(path string) string { return filepath.Join(top, path) }

	shown := []string{"/usr", "/etc", "/opt/image"}
	// One by one, because a clone may be in a directory beside them.
	libraries, err := os.ReadDir(plan.Debian + "/var/lib")
	if err != nil {
		return err
	}
	for _, entry := range libraries {
		if entry.IsDir() {
			shown = append(shown, "/var/lib/"+entry.Name())
		}
	}
	for _, dir := range shown {
		if err := bind(plan.Debian+dir, at(dir), true); err != nil {
			return err
		}
	}
	if err := unix.Mount(plan.Hosts, at("/etc/hosts"), "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", plan.Hosts, err)
	}
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		if err := os.Symlink("usr/"+link, at(link)); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/home", "/root", "/srv", "/opt", "/var/log", "/var/cache", "/var/spool"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			return err
		}
	}
	for _, dir := range []string{"/tmp", "/run", "/run/lock", "/var/tmp"} {
		if err := os.MkdirAll(at(dir), 0o755); err != nil {
			return err
		}
		if err := os.Chmod(at(dir), 0o777|os.ModeSticky); err != nil {
			return err
		}
	}
	if err := os.Symlink("../run", at("/var/run")); err != nil {
		return err
	}

	if err := bind(plan.Kubernetes, at(KubernetesDir), true); err != nil {
		return err
	}
	if node := plan.Node; node != nil {
		for from, to := range map[string]string{node.Kubernetes: KubernetesNodeDir, node.Containerd: ContainerdDir} {
			if err := bind(from, at(to), true); err != nil {
				return err
			}
		}
	}
	for name, file := range plan.Images {
		if err := bind(filepath.Dir(file), at(filepath.Join(ImagesDir, name)), true); err != nil {
			return err
		}
	}
	// For what this machine's administrator would add.
	if err := mount("tmpfs", at("/usr/local/bin"), "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	if err := bind(plan.Unpacked, at(UnpackedDir), false); err != nil {
		return err
	}
	for _, dir := range plan.Writable {
		if err := bind(dir, at(dir), false); err != nil {
			return err
		}
	}

	if err := bind("/dev", at("/dev"), false); err != nil {
		return err
	}
	// As distributions mount it: an sshd that is not root cannot give a terminal to the group tty itself.
	if err := mount(
		"devpts",
		at("/dev/pts"),
		"devpts",
		unix.MS_NOSUID|unix.MS_NOEXEC,
		"gid=5,mode=620,ptmxmode=666",
	); err != nil {
		return err
	}
	if err := mountFuse(at); err != nil {
		return err
	}
	if err := mountSys(plan, at("/sys")); err != nil {
		return err
	}
	if err := mount("tmpfs", at("/dev/shm"), "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return err
	}
	// A proc with nothing mounted over it: only then may a user namespace inside mount its own.
	if err := mount("proc", at("/proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}

	if err := os.Mkdir(at("/.old"), 0o700); err != nil {
		return err
	}
	if err := unix.PivotRoot(top, at("/.old")); err != nil {
		return fmt.Errorf("pivot_root: %w", err)
	}
	if err := os.Chdir("/"); err != nil {
		return err
	}
	if err := unix.Unmount("/.old", unix.MNT_DETACH); err != nil {
		return err
	}
	return os.Remove("/.old")
}

// mountFuse lets every account open /dev/fuse, by which apptainer mounts images. On a machine without it squashfuse is
// covered, and apptainer unpacks the image for each job, which takes four times as long.
func mountFuse(at func(string) string) error {
	dir, device := at("/mnt"), at("/dev/fuse")
	if err := mount("tmpfs", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NOEXEC, "mode=755"); err != nil {
		return err
	}
	node := filepath.Join(dir, "fuse")
	if usable(node) && os.Chmod(node, 0o666) == nil && unix.Mount(node, device, "", unix.MS_BIND, "") == nil {
		return nil
	}
	for _, program := range []string{"/usr/bin/squashfuse", "/usr/bin/squashfuse_ll"} {
		if err := unix.Mount("/dev/null", at(program), "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("cover %s: %w", program, err)
		}
	}
	return nil
}

// usable makes a node of the fuse device and reports whether it can be opened.
func usable(node string) bool {
	if unix.Mknod(node, unix.S_IFCHR|0o600, int(unix.Mkdev(10, 229))) != nil {
		return false
	}
	f, err := os.OpenFile(node, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// mountSys shows the host's /sys, or for a lab with a node one of its own network, and the host's cgroups, in which its
// pods get a place.
func mountSys(plan Plan, target string) error {
	if plan.Node == nil {
		return bind("/sys", target, false)
	}
	if err := mount("sysfs", target, "sysfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	if err := unix.Mount(CgroupDir, target+"/fs/cgroup", "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", CgroupDir, err)
	}
	return MakeCgroup(plan.Node.Cgroup)
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}

// bind shows source as target, without what is mounted below it.
func bind(source, target string, readOnly bool) error {
	if err := os.MkdirAll(target, 0o755); err != nil {
		return fmt.Errorf("%w: a lab and its clone cannot lie below /usr or /etc", err)
	}
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind %s: %w", source, err)
	}
	if readOnly {
		if err := unix.Mount("", target, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			return fmt.Errorf("bind %s read-only: %w", source, err)
		}
	}
	return nil
}
