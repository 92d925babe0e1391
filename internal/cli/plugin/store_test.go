package plugin

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/cli/setting"
)

// shelf is a store in memory.
type shelf struct {
	store
	all     []runtime.Object
	changes []runtime.Object // what a watch brings, one after the other
	fails   error
	did     []string // what was patched and deleted
}

func (s *shelf) get(_ context.Context, name string) (*object, error) {
	for _, o := range s.all {
		if found := objectOf(o); found.Name == name && s.fails == nil {
			return found, nil
		}
	}
	if s.fails != nil {
		return nil, s.fails
	}
	return nil, apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("any").GroupResource(), name)
}

func (s *shelf) list(context.Context, metav1.ListOptions) (some []*object, more string, err error) {
	for _, o := range s.all {
		some = append(some, objectOf(o))
	}
	return some, "", s.fails
}

func (s *shelf) watch(context.Context, metav1.ListOptions) (watch.Interface, error) {
	w := watch.NewFakeWithChanSize(1, false)
	if len(s.changes) > 0 {
		w.Modify(s.changes[0])
		s.changes = s.changes[1:]
	}
	return w, nil
}

func (s *shelf) patch(
	ctx context.Context,
	name string,
	_ types.PatchType,
	data []byte,
	_ metav1.PatchOptions,
) (*object, error) {
	s.did = append(s.did, name+" "+string(data))
	return s.get(ctx, name)
}

func (s *shelf) remove(_ context.Context, name string, _ metav1.DeleteOptions) error {
	s.did = append(s.did, name+" deleted")
	return nil
}

func jobNamed(name string, phase v1alpha1.Phase) *v1alpha1.HTCJob {
	j := job(phase)
	j.Name = name
	return j
}

func workflowNamed(name string, phase v1alpha1.Phase) *v1alpha1.HTCWorkflow {
	return &v1alpha1.HTCWorkflow{
		ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1},
		Status:     v1alpha1.HTCWorkflowStatus{Phase: phase, ObservedGeneration: 1},
	}
}

// shelves is a namespace with an HTCJob zero, an HTCWorkflow scan, and one of each called both.
func shelves() (c *cluster, jobs, workflows *shelf, warnings *strings.Builder) {
	jobs = &shelf{
		all: []runtime.Object{jobNamed("zero", v1alpha1.PhaseRunning), jobNamed("both", v1alpha1.PhaseFailed)},
	}
	workflows = &shelf{
		all: []runtime.Object{
			workflowNamed("scan", v1alpha1.PhaseRunning),
			workflowNamed("both", v1alpha1.PhaseSucceeded),
		},
	}
	warnings = &strings.Builder{}
	return &cluster{
		namespace: "ns",
		jobs:      jobs,
		workflows: workflows,
		coming:    delay{warnings: warnings},
	}, jobs, workflows, warnings
}

var (
	errForbidden = apierrors.NewForbidden(
		v1alpha1.GroupVersion.WithResource("htcworkflows").GroupResource(),
		"",
		errors.New("no right"),
	)
	errAway = apierrors.NewServiceUnavailable("the apiserver is away")
)

func TestANameIsLookedUpAsBothKinds(t *testing.T) {
	for argument, c := range map[string]struct {
		want, words string
		jobs, flows error
	}{
		"zero":              {want: "job/zero"},
		"scan":              {want: "wf/scan"},
		"both":              {words: `"both" is the name of an HTCJob and of an HTCWorkflow: write job/both or wf/both`},
		"job/both":          {want: "job/both"},
		"htcworkflow/both":  {want: "wf/both"},
		"wf/zero":           {words: `"zero" not found`},
		"none":              {words: `"none" not found: namespace ns has no HTCJob and no HTCWorkflow of this name`},
		"job/zero ":         {words: `"zero " not found`},
		"scan/":             {words: `"scan/": want the name`},
		"zero (no right)":   {want: "job/zero", flows: errForbidden},
		"none (no right)":   {words: "no right", flows: errForbidden},
		"zero (an outage)":  {words: "is away", flows: errAway},
		"scan (an outage)":  {words: "is away", jobs: errAway},
		"scan (not theirs)": {want: "wf/scan", jobs: errForbidden},
	} {
		where, jobs, workflows, _ := shelves()
		jobs.fails, workflows.fails = c.jobs, c.flows
		name, _, _ := strings.Cut(argument, " (")
		o, err := where.find(t.Context(), name)
		if c.words != "" {
			require.ErrorContains(t, err, c.words, argument)
			continue
		}
		require.NoError(t, err, argument)
		require.Equal(t, c.want, o.short(o.Name), argument)
	}
	where, jobs, workflows, _ := shelves()
	jobs.fails, workflows.fails = errForbidden, errForbidden
	ref, err := where.resolve(t.Context(), reference{name: "scan"})
	require.NoError(t, err)
	require.Equal(t, jobKind, ref.kind, "who may only read output names an HTCWorkflow by wf/")
}

func TestANameThatTwoHaveIsAMistakeBeforeAnythingIsDone(t *testing.T) {
	where, jobs, workflows, _ := shelves()
	deleted := func(o *object) error { return where.of(o.kind).remove(t.Context(), o.Name, metav1.DeleteOptions{}) }
	require.ErrorAs(t, where.each(t.Context(), []string{"zero", "both"}, deleted), &setting.Usage{})
	require.Empty(t, jobs.did)
	err := where.each(t.Context(), []string{"none", "zero", "wf/both", "scan"}, deleted)
	require.ErrorContains(t, err, `"none" not found`)
	require.Equal(t, []string{"zero deleted"}, jobs.did, "the others are")
	require.Equal(t, []string{"both deleted", "scan deleted"}, workflows.did)
}

func TestAWorkflowIsCancelledAndRunAgainAsAnHTCJob(t *testing.T) {
	where, _, workflows, _ := shelves()
	find := func(argument string) *object {
		o, err := where.find(t.Context(), argument)
		require.NoError(t, err)
		return o
	}
	said, err := where.cancel(t.Context(), find("scan"), "")
	require.NoError(t, err)
	require.Equal(t, "is cancelled", said)
	said, err = where.cancel(t.Context(), find("wf/both"), "")
	require.NoError(t, err)
	require.Equal(t, "has ended already", said)
	require.Equal(t, []string{`scan {"spec":{"suspend":true}}`}, workflows.did)
	for _, procs := range []func(*object) error{
		func(o *object) error { _, err := where.cancel(t.Context(), o, "3"); return err },
		func(o *object) error { _, err := chosen(o, false, "3"); return err },
	} {
		require.ErrorContains(t, procs(find("wf/both")), "--proc is for HTCJobs, and wf/both is an HTCWorkflow")
		require.ErrorAs(t, procs(find("scan")), &setting.Usage{})
	}

	failed := workflowNamed("lost", v1alpha1.PhaseFailed)
	failed.Status.Nodes = v1alpha1.NodeCounts{Total: 5, Done: 3, Failed: 1, Futile: 1}
	which, err := chosen(objectOf(failed), true, "")
	require.NoError(t, err)
	patch := string(rerunPatch(objectOf(failed), which, metav1.Now().Time))
	require.Contains(t, patch, `"spec":{"resume":"FromFailure"}`)
	require.NotContains(t, patch, "rerun-procs", "which is for HTCJobs")
	require.NotContains(t, string(rerunPatch(objectOf(failed), "", metav1.Now().Time)), "spec", "as it was written")
	_, err = chosen(find("wf/both"), true, "")
	require.EqualError(t, err, "all of its nodes have succeeded")
	_, err = chosen(find("scan"), false, "")
	require.ErrorContains(t, err, "has not ended")
}

func TestAShellIsOfferedNamesAndKindsWhereTheyAreNeeded(t *testing.T) {
	where, _, workflows, warnings := shelves()
	all, err := where.selected(t.Context(), selection{}, kinds...)
	require.NoError(t, err)
	require.ElementsMatch(
		t,
		[]string{"zero\trunning", "job/both\tfailed", "scan\trunning", "wf/both\tsucceeded"},
		offered(all, nil, ""),
	)
	require.ElementsMatch(
		t,
		[]string{"zero\trunning", "job/both\tfailed"},
		offered(all, []string{"scan", "wf/both"}, "z"),
	)
	require.Contains(t, offered(all, nil, "htcworkflow/s"), "htcworkflow/scan\trunning")
	require.Contains(t, offered(all, nil, "wf/"), "wf/scan\trunning")

	workflows.fails = errForbidden
	all, err = where.selected(t.Context(), selection{}, kinds...)
	require.NoError(t, err)
	require.Len(t, objectsNamed(all, "zero"), 1)
	require.Contains(t, warnings.String(), "no right")
	where.jobs.(*shelf).fails = errForbidden
	_, err = where.selected(t.Context(), selection{}, kinds...)
	require.ErrorContains(t, err, "no right")
}

func objectsNamed(all []*object, name string) (some []*object) {
	for _, o := range all {
		if o.Name == name {
			some = append(some, o)
		}
	}
	return some
}
