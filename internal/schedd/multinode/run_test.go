package multinode

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// nodes returns the places of a job of so many nodes on this machine.
func nodes(t *testing.T, n int) []place {
	all := make([]place, n)
	for i := range all {
		all[i] = place{
			dir:       t.TempDir(),
			number:    i,
			key:       []byte(t.Name()),
			addresses: strings.Fields(strings.Repeat("127.0.0.1 ", n)),
		}
	}
	return all
}

// result is what becomes of a job.
type result struct {
	code        int
	out, errout string
	err         error
	others      []int // the return codes of the other nodes
}

// job runs a script on all nodes.
func job(t *testing.T, script string, nodes ...place) (r result) {
	var out, errout safe
	r.others = make([]int, len(nodes))
	var wg sync.WaitGroup
	for i, p := range nodes {
		config, err := p.tls()
		require.NoError(t, err)
		l, err := p.listen(t.Context())
		require.NoError(t, err)
		words := []string{"sh", "-c", script}
		wg.Go(func() {
			defer l.Close()
			if i == 0 {
				r.code, r.err = p.lead(t.Context(), config, l, words, &out, &errout)
			} else {
				r.others[i], _ = p.follow(t.Context(), config, l, words)
			}
		})
	}
	wg.Wait()
	r.out, r.errout = out.text.String(), errout.text.String()
	return r
}

// safe is written to by several.
type safe struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *safe) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(text)
}

func TestTheScriptRunsOnEveryNodeAndTheFirstPrintsWhatTheOthersPrint(t *testing.T) {
	wait := filepath.Join(t.TempDir(), "done")
	r := job(t, `echo "node $HTC_NODE of $HTC_NODES at $HTC_NODE_ADDRESSES"
		[ $HTC_NODE != 2 ] || printf wrong >&2
		[ $HTC_NODE = 0 ] || { >`+wait+`$HTC_NODE; exec sleep 1000; }
		while ! [ -e `+wait+`1 ] || ! [ -e `+wait+`2 ]; do sleep 0.01; done`, nodes(t, 3)...)
	require.NoError(t, r.err)
	require.Zero(t, r.code)
	for number, before := range []string{"", "1: ", "2: "} {
		require.Contains(
			t,
			"\n"+r.out,
			fmt.Sprintf("\n%snode %d of 3 at 127.0.0.1 127.0.0.1 127.0.0.1\n", before, number),
		)
	}
	require.Equal(t, "2: wrong\n", r.errout)
	require.Equal(t, []int{0, 143, 143}, r.others, "they end with the first")
}

func TestTheFirstNodeThatFailsEndsTheJobWithItsReturnCode(t *testing.T) {
	r := job(t, "[ $HTC_NODE != 1 ] || exit 7; exec sleep 1000", nodes(t, 3)...)
	require.Equal(t, 7, r.code)
	require.EqualError(t, r.err, "the script has failed on node 1, with return code 7: this ends the job on all nodes")
	require.Equal(t, []int{0, 7, 143}, r.others)

	r = job(t, "[ $HTC_NODE != 0 ] || exit 3; exec sleep 1000", nodes(t, 2)...)
	require.NoError(t, r.err)
	require.Equal(t, []int{3, 143}, []int{r.code, r.others[1]})
}

func TestANodeThatHasEndedWellEndsNoOther(t *testing.T) {
	r := job(t, "[ $HTC_NODE = 0 ] || exit 0; sleep 0.2; exit 4", nodes(t, 2)...)
	require.NoError(t, r.err)
	require.Equal(t, 4, r.code)
}

func TestANodeWithoutAContainerEndsTheJob(t *testing.T) {
	all := nodes(t, 3)
	for _, p := range all[1:] {
		go func() { _ = p.fail(t.Context(), 255) }()
	}
	r := job(t, "exec sleep 1000", all[0])
	require.Equal(t, 255, r.code)
	require.ErrorContains(t, r.err, "return code 255")
}

func TestWhoHasAnotherKeyCannotJoin(t *testing.T) {
	p := nodes(t, 2)
	config, err := p[0].tls()
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	joined := make(chan message, 1)
	go accept(l, config, func(_ *conn, first message) { joined <- first })
	port := l.Addr().(*net.TCPAddr).Port

	other := p[1]
	other.key = []byte("another")
	wrong, err := other.tls()
	require.NoError(t, err)
	_, err = dial(t.Context(), wrong, "127.0.0.1", port, message{Join: 1})
	require.ErrorContains(t, err, "certificate")

	right, err := p[1].tls()
	require.NoError(t, err)
	c, err := dial(t.Context(), right, "127.0.0.1", port, message{Join: 1})
	require.NoError(t, err)
	defer c.Close()
	require.Equal(t, message{Join: 1}, <-joined)
}

func TestACommandIsStartedOnAnotherNode(t *testing.T) {
	all := nodes(t, 2)
	p := all[1]
	config, err := p.tls()
	require.NoError(t, err)
	l, err := p.listen(t.Context())
	require.NoError(t, err)
	defer l.Close()
	ports := []int{1, l.Addr().(*net.TCPAddr).Port}
	go accept(l, config, func(c *conn, first message) { p.start(c, ports, first.Start) })

	dir := all[0].dir
	ad := filepath.Join(dir, "ad")
	require.NoError(t, os.WriteFile(filepath.Join(dir, fileKey), p.key, 0o600))
	require.NoError(t, os.WriteFile(ad, []byte("PublicClaimIds = \""+claims+"\"\n"), 0o600))
	for name, value := range map[string]string{
		"_CONDOR_PROCNO": "0", "_CONDOR_NPROCS": "2", "_CONDOR_JOB_AD": ad, portsVariable: fmt.Sprintf("1 %d", ports[1]),
	} {
		t.Setenv(name, value)
	}
	var out, errout bytes.Buffer
	require.Equal(
		t,
		5,
		Start(t.Context(), dir, []string{"-x", "node1", `echo "on $HTC_NODE"; echo`, "no >&2; exit 5"}, &out, &errout),
	)
	require.Equal(t, "on 1\n", out.String())
	require.Equal(t, "no\n", errout.String())

	for words, want := range map[string]string{
		"node2 true": `htcd: found the host "node2", expected node0 to node1`,
		"other true": `htcd: found the host "other", expected node0 to node1`,
		"node1":      "htcd: expected a host, such as node1, and a command to run there",
	} {
		errout.Reset()
		require.Equal(t, notRun, Start(t.Context(), dir, strings.Fields(words), &out, &errout))
		require.Equal(t, want+"\n", errout.String())
	}
}

const claims = "<127.0.0.1:21037?addrs=127.0.0.1-21037&alias=a.b&noUDP&sock=startd_1009_ab26>#1795714187#3#...," +
	"<127.0.0.1:21037?addrs=127.0.0.1-21037+[--1]-21037>#1795714187#4#..."

func TestAddresses(t *testing.T) {
	for ad, want := range map[string][]string{
		"PublicClaimId = \"<1.2.3.4:5>#1\"\nPublicClaimIds = \"" + claims + "\"\n": {"127.0.0.1", "127.0.0.1"},
		"PublicClaimIds = \"<[fe80::1]:9618>#1#2#...,<10.0.0.2:9618?a=b>#1\"":      {"fe80::1", "10.0.0.2"},
		"ClusterId = 5\n":              nil,
		"PublicClaimIds = undefined\n": nil,
	} {
		require.Equal(t, want, addresses(ad))
	}
}

func TestLinesWithoutAnEndAreWrittenInParts(t *testing.T) {
	var b bytes.Buffer
	l := &lines{to: &b, before: "3: "}
	for _, text := range []string{"a", "b\nc\n\n", strings.Repeat("x", longest), "end"} {
		_, err := l.Write([]byte(text))
		require.NoError(t, err)
	}
	l.end()
	l.end()
	require.Equal(t, "3: ab\n3: c\n3: \n3: "+strings.Repeat("x", longest)+"\n3: end\n", b.String())
}

func TestLinesThatCannotBeWrittenAreNotKept(t *testing.T) {
	l := &lines{to: full{}, before: "3: "}
	for range 10 {
		_, err := l.Write([]byte(strings.Repeat("x\n", longest)))
		require.ErrorIs(t, err, syscall.ENOSPC)
	}
	require.Zero(t, len(l.rest))
}

// full is a file on a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
