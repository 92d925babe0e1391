package root

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Bridge is the interface to which a node's pods are attached; its address is NodeAddress.
const Bridge = "pods"

// PodNetwork is the network of their addresses.
const PodNetwork = "10.88.0.0/16"

// loopback makes 127.0.0.1 work in a new network namespace.
func loopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	return nil
}

// network makes the bridge. It has no connection to the outside: what a lab needs is in the lab.
func network() error {
	for _, args := range [][]string{
		{"link", "add", Bridge, "type", "bridge"},
		{"address", "add", NodeAddress + "/16", "dev", Bridge},
		{"link", "set", Bridge, "up"},
		// kubelet wants to see a default route; nothing answers beyond it.
		{"route", "add", "default", "dev", Bridge},
	} {
		if out, err := exec.Command("/usr/sbin/ip", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("ip %v: %w: %s", args, err, out)
		}
	}
	return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
}

// Dial connects from within the network of the lab whose first process is pid.
func Dial(ctx context.Context, pid int, network, address string) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// A thread that has joined another network ends with its goroutine, since it is never unlocked.
		runtime.LockOSThread()
		if err := JoinNetwork(pid); err != nil {
			done <- result{nil, err}
			return
		}
		// A lab's addresses are numeric, so the dial happens on this very thread.
		var d net.Dialer
		conn, err := d.DialContext(ctx, network, address)
		done <- result{conn, err}
	}()
	r := <-done
	return r.conn, r.err
}

// JoinNetwork puts this thread into the network of the lab whose first process is pid.
func JoinNetwork(pid int) error {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/net", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Setns(fd, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("join the lab's network: %w", err)
	}
	return nil
}
