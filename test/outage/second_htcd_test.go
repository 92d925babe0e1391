package outage

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/trial"
)

// As in a rolling update: the second stands by until the first ends or disappears.
func TestOfTwoHtcdsOneWorks(t *testing.T) {
	o := begin(t, "--callback-deadline=2s")
	second := o.second()
	require.Equal(t, http.StatusServiceUnavailable, second.ready())
	create := func(when string) []string {
		var names []string
		for i := range 3 {
			names = append(names, fmt.Sprintf("%s-%d", when, i))
			o.Create(names[i], "sleep 2\n", trial.Queue(int32(i%2+1)))
		}
		return names
	}

	holder := func() string {
		return o.Kubectl("get", "lease", "htcd", "-n", "default", "-o", "jsonpath={.spec.holderIdentity}")
	}

	names := create("stopped")
	o.do(o.part("htcd").Stop)
	o.Eventually(
		func() bool { return second.ready() == http.StatusOK },
		func() string { return "the second never took over" },
	)
	o.succeeded(names...)

	// And back: the first stands by and takes over from a killed one.
	started := make(chan error, 1)
	go func() { started <- o.part("htcd").Start(context.WithoutCancel(t.Context())) }()
	names = create("killed")
	second.kill()
	require.NoError(t, <-started)
	o.succeeded(names...)

	// A leader that was asleep must not continue as if nothing had happened.
	second = o.second()
	names = create("frozen")
	o.do(o.part("htcd").Freeze)
	// It may hold the ledger's lock while asleep: then the second waits for that.
	o.Eventually(
		func() bool { return holder() == "second" },
		func() string { return "the second never took the lease" },
	)
	o.do(o.part("htcd").Thaw)
	o.Eventually(func() bool { return strings.Contains(o.log(), "this process must not continue") }, o.log)
	o.succeeded(names...)
	require.Equal(t, http.StatusOK, second.ready(), "the second still leads")
	require.Equal(t, "second", holder())
	second.kill()
	o.gone()
}

// another is an htcd beside the lab's own, on different ports: the jobs' callbacks do not reach it.
type another struct {
	o      outage
	cmd    *exec.Cmd
	health string
	gone   chan struct{}
}

func (o outage) second() *another {
	o.T.Helper()
	a := &another{o: o, health: freeAddress(o.T), gone: make(chan struct{})}
	a.cmd = exec.Command(
		o.Lab.Bin("htcd"),
		"run",
		"--identity=second",
		"--listen="+freeAddress(o.T),
		"--output-listen="+freeAddress(o.T),
		"--health-listen="+a.health,
		"--ticket-dir=/dev/shm/htcd-second",
		"--reconcile-schedule=@every 5s",
		"--callback-deadline=2s",
	)
	a.cmd.Dir = o.Lab.Dir
	require.NoError(o.T, a.cmd.Start())
	go func() { _ = a.cmd.Wait(); close(a.gone) }()
	o.T.Cleanup(a.kill)
	o.Eventually(func() bool { return a.ready() != 0 }, func() string { return "the second htcd does not answer" })
	return a
}

// ready returns the status of /readyz, 0 if there is no answer.
func (a *another) ready() int {
	response, err := http.Get("http://" + a.health + "/readyz")
	if err != nil {
		return 0
	}
	_ = response.Body.Close()
	return response.StatusCode
}

// kill kills it without notice. It may have replaced itself, and does not die with the program that runs it in the lab
// then: the death signal is a thread's, and execve(2) was called by another one.
func (a *another) kill() {
	for _, child := range trial.Children(a.cmd.Process.Pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	_ = a.cmd.Process.Signal(syscall.SIGKILL)
	<-a.gone
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
