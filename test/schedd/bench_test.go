package schedd_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/schedd/submit"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

const (
	patience = trial.Patience
	token    = "dG9rLTAxMjM0NTY3ODlhYmNkZWYtMDEyMzQ1Njc4OWE"
)

// bench is one test's run, with robot's ticket for the schedd.
type bench struct {
	*schedd.Client
	t     *testing.T
	world parts.World
	id    schedd.Identity
	d     submit.Description

	mu     sync.Mutex
	events []event
}

type event struct {
	Type, Source, ID string
	Data             struct {
		Name, Namespace, JobID string
		Retcode                int
		Node                   int    // of a DAG
		Exit                   *int   // as Node
		Stderr                 string // as Node
	}
	authorization string
}

func world(t *testing.T) parts.World {
	t.Helper()
	running, err := lab.Open(os.Getenv("HTCD_LAB")) // whether it runs can only be seen from outside
	require.NoError(t, err)
	text, err := os.ReadFile(running.Path("run", "world.json"))
	require.NoError(t, err)
	var w parts.World
	require.NoError(t, json.Unmarshal(text, &w))
	return w
}

func keeper(t *testing.T, w parts.World) *krb.Keeper {
	t.Helper()
	k := krb.New(
		krb.Options{
			Dir:        t.TempDir(),
			Krb5Config: w.Lab.Path("krb", "krb5.conf"),
			Lifetime:   time.Hour,
			Renewable:  24 * time.Hour,
		},
	)
	t.Cleanup(func() { require.NoError(t, k.Close()) })
	return k
}

var robot = krb.Credential{Username: "robot", Password: parts.Passwords["robot"]}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, world: world(t)}
	b.Client = schedd.New(b.options())
	ticket, err := keeper(t, b.world).Ticket(t.Context(), robot)
	require.NoError(t, err)
	b.id = schedd.Identity{CCache: ticket.CCache}
	receiver := httptest.NewServer(http.HandlerFunc(b.receive))
	t.Cleanup(receiver.Close)
	b.d = submit.Description{
		Tag:       condor.Tag{UID: "test-" + rand.Text(), Attempt: 1, Namespace: "default", Name: "conversation"},
		BatchName: t.Name(), Queue: 1, Command: "bash", Source: "exit 0",
		Image:       fmt.Sprintf("docker://127.0.0.1:%d/centos", b.world.Ports.Registry),
		CallbackURL: receiver.URL, CallbackDeadline: 20 * time.Second,
	}
	return b
}

func (b *bench) options() schedd.Options {
	return schedd.Options{
		CondorConfig: b.world.Lab.Path("condor", "client.conf"),
		Krb5Config:   b.world.Lab.Path("krb", "krb5.conf"),
	}
}

func (b *bench) receive(w http.ResponseWriter, r *http.Request) {
	var e event
	if err := json.NewDecoder(r.Body).Decode(&e); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	e.authorization = r.Header.Get("Authorization")
	b.mu.Lock()
	defer b.mu.Unlock()
	b.events = append(b.events, e)
	w.WriteHeader(http.StatusNoContent)
}

func (b *bench) received() []event {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]event(nil), b.events...)
}

// submit sends b.d; at the end of the test its remaining jobs are removed.
func (b *bench) submit() condor.Cluster {
	b.t.Helper()
	cluster, err := b.send()
	require.NoError(b.t, err)
	require.Equal(b.t, b.d.Queue, cluster.Procs)
	b.t.Cleanup(b.remove)
	return cluster
}

func (b *bench) remove() {
	require.NoError(
		b.t,
		scheddtest.Err(
			b.Change(
				context.WithoutCancel(b.t.Context()),
				b.id,
				schedd.Remove{Where: b.d.Tag.Constraint(), Reason: "the test is over"},
			),
		),
	)
}

func (b *bench) send() (condor.Cluster, error) {
	dir := b.t.TempDir()
	if err := stage(dir, b.d); err != nil {
		return condor.Cluster{}, err
	}
	return b.Submit(b.t.Context(), b.id, dir)
}

// stage writes the sandbox that Render returns for d.
func stage(dir string, d submit.Description) error {
	s, err := d.Render()
	if err != nil {
		return err
	}
	return submit.Stage(dir, s, token)
}

// jobs returns the run's jobs.
func (b *bench) jobs() []condor.Job {
	b.t.Helper()
	var jobs []condor.Job
	require.NoError(
		b.t,
		b.Query(b.t.Context(), b.id, schedd.Query{Where: b.d.Tag.Constraint()}, func(j condor.Job) error {
			jobs = append(jobs, j)
			return nil
		}),
	)
	return jobs
}

// until waits until every job of the run satisfies a condition.
func (b *bench) until(wanted string, is func(condor.Job) bool) []condor.Job {
	b.t.Helper()
	var jobs []condor.Job
	require.Eventually(b.t, func() bool {
		jobs = b.jobs()
		for _, j := range jobs {
			if !is(j) {
				return false
			}
		}
		return len(jobs) == b.d.Queue
	}, patience, 200*time.Millisecond, wanted)
	return jobs
}
