package parts

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"time"

	"htc.cern.ch/htcd/test/lab"
)

// ReceiverNet is the network between jobs and htcd's receiver: without it callbacks are lost. It is this program,
// called with "receiver-net". See lab.Callbacks for what it can do.
func ReceiverNet(w World) *Process {
	return &Process{
		Name: "receiver-net", Log: w.Lab.Log("receiver-net"), Port: w.Ports.ReceiverNet,
		Args: []string{w.Lab.Bin("lab"), "receiver-net",
			fmt.Sprintf("127.0.0.1:%d", w.Ports.ReceiverNet), fmt.Sprintf("127.0.0.1:%d", w.Ports.Receiver),
			w.Lab.CallbacksFile(), receiverFile(w, "receiver.crt"), receiverFile(w, "receiver.key")},
		Ready: tcpReady("127.0.0.1", w.Ports.ReceiverNet),
	}
}

// Relay is receiver-net's program: it forwards every connection, disturbed as the file then says. It has the receiver's
// certificate, so that it can repeat a callback, which TLS otherwise prevents.
func Relay(listen, to, file, certificate, key string) error {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return err
	}
	l, err := tls.Listen("tcp", listen, &tls.Config{Certificates: []tls.Certificate{pair}})
	if err != nil {
		return err
	}
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		disturbed, err := lab.ReadCallbacks(file)
		if err != nil {
			return err
		}
		go relay(conn, to, disturbed)
	}
}

// relay carries one connection, which is one callback: the senders of htcd open one for each try.
func relay(in net.Conn, to string, disturbed lab.Callbacks) {
	defer in.Close()
	if chance(disturbed.Delay) {
		pause("delayed")
	}
	dropped := chance(disturbed.Drop)
	if dropped && chance(0.5) {
		log.Print("dropped")
		return
	}
	out, err := dialReceiver(to)
	if err != nil {
		log.Printf("dropped: %v", err)
		return
	}
	defer out.Close()
	var sent bytes.Buffer
	done := make(chan struct{})
	go func() {
		copyHalf(out, io.TeeReader(in, &sent))
		close(done)
	}()
	if dropped {
		log.Print("answer dropped")
		waitForAnswer(out)
		in.Close()
	} else {
		copyHalf(in, out)
	}
	<-done
	if sent.Len() > 0 && chance(disturbed.Double) {
		pause("doubled")
		again(to, sent.Bytes())
	}
}

// dialReceiver takes any certificate: tests give the receiver others than the lab's, and this is loopback.
func dialReceiver(to string) (net.Conn, error) {
	return tls.Dial("tcp", to, &tls.Config{InsecureSkipVerify: true})
}

// again sends the same callback once more.
func again(to string, sent []byte) {
	out, err := dialReceiver(to)
	if err != nil {
		log.Printf("not doubled: %v", err)
		return
	}
	defer out.Close()
	if _, err := out.Write(sent); err == nil {
		waitForAnswer(out)
	}
}

// waitForAnswer returns when the receiver has begun to answer: it has then dealt with the callback.
func waitForAnswer(out net.Conn) {
	_ = out.SetReadDeadline(time.Now().Add(lab.CallbackDelay))
	_, _ = out.Read(make([]byte, 1))
	_ = out.SetReadDeadline(time.Time{})
}

func chance(p float64) bool { return rand.Float64() < p }

func pause(why string) {
	d := rand.N(lab.CallbackDelay)
	log.Printf("%s by %s", why, d)
	time.Sleep(d)
}

// copyHalf also passes on the end of one direction.
func copyHalf(to net.Conn, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil && !errors.Is(err, net.ErrClosed) {
		log.Printf("cut: %v", err)
	}
	_ = to.(*tls.Conn).CloseWrite()
}
