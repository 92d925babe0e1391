package parts

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
)

// ReceiverNet is the network between jobs and htcd's receiver: without it callbacks are lost. It is this program
// itself, called with "receiver-net".
func ReceiverNet(w World) *Process {
	return &Process{
		Name: "receiver-net", Log: w.Lab.Log("receiver-net"), Port: w.Ports.ReceiverNet,
		Args: []string{w.Lab.Bin("lab"), "receiver-net",
			fmt.Sprintf("127.0.0.1:%d", w.Ports.ReceiverNet), fmt.Sprintf("127.0.0.1:%d", w.Ports.Receiver)},
		Ready: tcpReady(w.Ports.ReceiverNet),
	}
}

// Relay is receiver-net's program: it hands every connection on.
func Relay(listen, to string) error {
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go relay(conn, to)
	}
}

func relay(in net.Conn, to string) {
	defer in.Close()
	out, err := net.Dial("tcp", to)
	if err != nil {
		log.Printf("dropped: %v", err)
		return
	}
	defer out.Close()
	done := make(chan struct{})
	go func() {
		copyHalf(out, in)
		close(done)
	}()
	copyHalf(in, out)
	<-done
}

// copyHalf passes the end of one direction on as well.
func copyHalf(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Printf("cut: %v", err)
	}
	_ = to.(*net.TCPConn).CloseWrite()
}
