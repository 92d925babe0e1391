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

// The blocks lie below the range that the kernel takes ports of outgoing connections from (32768 by default), so
// that a stopped part finds its port free when it starts again.
const (
	first  = 21000
	size   = 16
	blocks = 600
)

// Block is a run of ports on loopback that belongs to one lab for as long as the file stays open.
type Block struct {
	Base int
	file *os.File
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
			return &Block{Base: base, file: file}, nil
		}
		file.Close()
	}
	return nil, errors.New("no free block of ports")
}

// free says whether nobody outside the reservations listens in the block.
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

// Ports of a lab, one per part that listens.
type Ports struct {
	EtcdClient, EtcdPeer, APIServer, ControllerManager int
	KDC, Condor, Registry                              int
	Receiver, ReceiverNet, Health, Output, Prometheus  int
}

// Ports gives each listener its place in the block.
func (b *Block) Ports() Ports {
	at := func(i int) int { return b.Base + i }
	return Ports{
		EtcdClient: at(0), EtcdPeer: at(1), APIServer: at(2), ControllerManager: at(3),
		KDC: at(4), Condor: at(5), Registry: at(6),
		Receiver: at(7), ReceiverNet: at(8), Health: at(9), Output: at(10),
		Prometheus: at(11),
	}
}
