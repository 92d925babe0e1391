package job

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
	"htc.cern.ch/htcd/internal/target/backend"
)

// tables are ConfigMaps, by name, with one key "csv"; and the items of each submission.
type tables struct {
	backend.Schedd
	maps map[string]string
	read int
	sent []string
}

func (s *tables) ConfigMap(_ context.Context, _, name string) (*corev1.ConfigMap, error) {
	text, is := s.maps[name]
	if !is {
		return nil, apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, name)
	}
	s.read++
	return &corev1.ConfigMap{Data: map[string]string{"csv": text}}, nil
}

func (s *tables) Submit(ctx context.Context, id schedd.Identity, dir string) (condor.Cluster, error) {
	files, err := filepath.Glob(filepath.Join(dir, ".own-*"))
	if err != nil {
		return condor.Cluster{}, err
	}
	var items []string
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 -- for tests only
		if err != nil {
			return condor.Cluster{}, err
		}
		item := strings.SplitN(string(text), "\n", 3)[2] // after the tokens
		items = append(items, strings.ReplaceAll(item, "\n", " "))
	}
	s.sent = append(s.sent, strings.Join(items, "| "))
	return s.Schedd.Submit(ctx, id, dir)
}

// said returns a condition's message.
func (w *world) said(name, kind string) string {
	c := meta.FindStatusCondition(w.job(name).Status.Conditions, kind)
	require.NotNil(w.t, c)
	return c.Message
}

func newWorldWithTables(t *testing.T, change ...func(*Options)) (*world, *tables) {
	s := &tables{maps: map[string]string{}}
	w := newWorld(t, append(change, func(o *Options) { o.ConfigMaps = s })...)
	s.Schedd = w.schedd
	w.asks(s)
	return w, s
}

func table(job *v1alpha1.HTCJob) {
	job.Spec.ItemsFrom = &v1alpha1.ItemsFrom{ConfigMapKeyRef: v1alpha1.KeyRef{Name: "points", Key: "csv"}}
}

func TestATableIsAwaitedAndReadOnce(t *testing.T) {
	w, s := newWorldWithTables(t)
	job := w.apply(htcjob("one", table))
	require.Equal(t, "ConfigMapNotFound", job.Status.Reason)
	require.Equal(
		t,
		"False ConfigMapNotFound: itemsFrom: there is no configmap points in this namespace",
		w.ready("one"),
	)
	w.later(time.Minute)
	require.Zero(t, w.schedd.Calls(scheddtest.Submit))

	s.maps["points"] = "A,B\n1,x\n2,y\n3,z\n"
	w.later(time.Minute)
	require.Equal(t, []string{"A=1 B=x | A=2 B=y | A=3 B=z "}, s.sent)
	job = w.job("one")
	require.EqualValues(t, 3, job.Status.Active)
	require.Regexp(t, "^sha256:[0-9a-f]{64}$", job.Status.ItemsDigest)
	require.Equal(
		t,
		"True Read: the table of itemsFrom has been read; its digest is "+job.Status.ItemsDigest,
		w.ready("one"),
	)

	s.maps["points"] = "A\n9\n"
	w.later(time.Minute)
	require.Equal(t, job.Status.ItemsDigest, w.job("one").Status.ItemsDigest)
	require.Equal(t, 1, s.read)

	w.schedd.Complete(1, 0, 0)
	w.schedd.Complete(1, 1, 7)
	w.schedd.Complete(1, 2, 0)
	w.crosscheck()
	job = w.job("one")
	require.Equal(t, "A=2 B=y", job.Status.Failures[0].Item)
	require.Contains(t, w.said("one", v1alpha1.ConditionFailed), "1.1, A=2 B=y: exit code 7")
}

// Whatever interrupts a submission, what is sent is the table that was read first.
func TestWhatIsSentAgainHasTheSameItems(t *testing.T) {
	w, s := newWorldWithTables(t)
	s.maps["points"] = "A\n1\n2\n"
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.apply(htcjob("one", table))
	require.Equal(t, ledger.Intent, w.run("one").State)
	s.maps["points"] = "A\n9\n"
	w.restart()
	w.later(time.Minute)
	w.later(time.Minute)
	require.Equal(t, []string{"A=1 | A=2 ", "A=1 | A=2 "}, s.sent)
	require.EqualValues(t, 2, w.job("one").Status.Active)

	// The table is gone by then, too.
	s.maps["points"] = "A\n1\n2\n"
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken})
	w.apply(htcjob("two", table))
	delete(s.maps, "points")
	w.later(time.Minute)
	w.later(time.Minute)
	require.Equal(t, "A=1 | A=2 ", s.sent[len(s.sent)-1])
	require.EqualValues(t, 2, w.job("two").Status.Active)
}

func TestABadTableIsRefusedWithItsLine(t *testing.T) {
	w, s := newWorldWithTables(t)
	s.maps["points"] = "A,B\n1,2\n3\n"
	job := w.apply(htcjob("one", table))
	require.Equal(t, v1alpha1.PhaseFailed, job.Status.Phase)
	require.Equal(
		t,
		"spec.itemsFrom: configmap points, key csv: line 3: expected 2 fields (A,B), found 1",
		w.said("one", v1alpha1.ConditionSubmitted),
	)
	require.EqualValues(t, 1, job.Status.Failed)
	s.maps["points"] = "HOME\n1\n"
	require.Contains(t, w.statusMessage(t, "two"), "the variable HOME is set by htcd, HTCondor or apptainer")
	require.Empty(t, s.sent)
}

// statusMessage applies an HTCJob with the table and returns why it is refused.
func (w *world) statusMessage(t *testing.T, name string) string {
	t.Helper()
	w.apply(htcjob(name, table))
	return w.said(name, v1alpha1.ConditionSubmitted)
}

func TestATablesJobsCountForTheLimits(t *testing.T) {
	w, s := newWorldWithTables(t, func(o *Options) { o.Site.MaxQueue, o.Site.MaxOpen = 3, 4 })
	s.maps["points"] = "A\n1\n2\n3\n4\n"
	require.Contains(
		t,
		w.statusMessage(t, "large"),
		"queue 4 is more than the 3 jobs that one HTCJob may have here (--max-queue)",
	)
	s.maps["points"] = "A\n1\n2\n3\n"
	w.apply(htcjob("first", table))
	require.Equal(t, "NamespaceLimit", w.apply(htcjob("second", table)).Status.Reason)
	require.Len(t, s.sent, 1)
}

// A ledger that is lost takes the items with it; those that the spec has are known again.
func TestItemsAfterALossOfTheLedger(t *testing.T) {
	w, s := newWorldWithTables(t)
	s.maps["points"] = "A\n1\n2\n"
	product := func(job *v1alpha1.HTCJob) {
		job.Spec.Parameters = map[string]v1alpha1.Parameter{"P": {"x", "y"}}
	}
	w.apply(htcjob("product", product))
	w.apply(htcjob("table", table))
	w.loseLedger()
	w.later(time.Hour)
	for cluster := 1; cluster <= 2; cluster++ {
		w.schedd.Complete(cluster, 0, 0)
		w.schedd.Complete(cluster, 1, 7)
	}
	w.crosscheck()
	require.Equal(t, "P=y", w.job("product").Status.Failures[0].Item)
	require.Empty(t, w.job("table").Status.Failures[0].Item)
	require.Equal(t, w.job("table").Status.ItemsDigest, w.run("table").ItemsDigest)
	require.Len(t, s.sent, 2, "nothing was sent again")
	require.EqualValues(t, 1, w.job("table").Status.Succeeded)
}

// The results of another table do not count.
func TestAnotherTableRunsAsAWholeIfTheLedgerHasLostTheOneBefore(t *testing.T) {
	w, s := newWorldWithTables(t)
	for i, c := range []struct{ table, sent string }{
		{"A\n1\n2\n3\n", "A=2 "},
		{"A\n9\n8\n", "A=9 | A=8 "},
	} {
		name := fmt.Sprint("of", i)
		s.maps["points"] = "A\n1\n2\n3\n"
		w.apply(htcjob(name, table))
		w.completed(w.run(name).Cluster, 0, 7, 0)
		w.crosscheck()
		w.loseLedger()
		s.maps["points"] = c.table
		w.again(name, "a", "1")
		for range 3 {
			w.later(time.Minute)
		}
		require.Equal(t, c.sent, s.sent[len(s.sent)-1])
	}
}
