package follow

import (
	"context"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/crypto/ssh"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/serve/aggregate"
)

// visits are what Shells over a world were asked to connect to.
type visits struct {
	at     [][2]int
	used   []string
	closed string
	err    error // of the connection
}

func (v *visits) shells(w *world) *Shells {
	return NewShells(Shells{
		Reader: w.Reader, Places: 4,
		Connect: func(_ context.Context, _ schedd.Identity, cluster, proc int, _ func(*ssh.Client) error) error {
			v.at = append(v.at, [2]int{cluster, proc})
			return v.err
		},
		Closed: func(context.Context, ledger.Run) (string, error) { return v.closed, nil },
		Used:   func(_ runtime.Object, _ aggregate.Query, message string) { v.used = append(v.used, message) },
	})
}

func commandAt(q aggregate.Query) aggregate.Command {
	q.User = "anna"
	return aggregate.Command{Query: q, Words: []string{"true"}}
}

func TestACommandIsRunWhereAJobRuns(t *testing.T) {
	w, v := newWorld(t), &visits{}
	s := v.shells(w)
	c := commandAt(asks())
	refused := func(code int, says string) {
		t.Helper()
		_, err := s.Begin(t.Context(), c)
		require.ErrorContains(t, err, says)
		status := apierrors.APIStatus(nil)
		require.ErrorAs(t, err, &status)
		require.EqualValues(t, code, status.Status().Code)
	}
	refused(http.StatusConflict, "there is no container to run anything in")
	w.sent(1)
	refused(http.StatusConflict, "there is no container to run anything in")
	w.runs()
	v.closed = "images are restricted"
	refused(http.StatusForbidden, "images are restricted")
	v.closed = ""
	for range 5 { // more than there are places
		run, err := s.Begin(t.Context(), c)
		require.NoError(t, err, "and whoever goes before it is run holds no place")
		_ = run
	}
	run, err := s.Begin(t.Context(), c)
	require.NoError(t, err)
	require.Empty(t, v.used)
	require.NoError(t, run(t.Context(), aggregate.Streams{}))
	require.Equal(t, [][2]int{{7, 0}}, v.at)
	require.Equal(t, []string{"anna runs a command in the container of job 7.0"}, v.used)

	for _, others := range []requester{{"b", "1"}, {"c", "2"}, {"d", "3"}} {
		require.True(t, s.places.take(others, 1))
	}
	require.NoError(t, run(t.Context(), aggregate.Streams{}), "the place was given back")
	require.True(t, s.places.take(requester{"e", "4"}, 1))
	require.True(t, apierrors.IsTooManyRequests(run(t.Context(), aggregate.Streams{})))
	require.Len(t, v.used, 2)
	s.places.give(requester{"e", "4"}, 1)
	v.err = &condor.Error{Command: "condor_ssh_to_job", Stderr: "Failed to connect to starter"}
	err = run(t.Context(), aggregate.Streams{})
	require.True(t, apierrors.IsServiceUnavailable(err), "%v", err)
	require.ErrorContains(
		t,
		err,
		"Failed to connect to starter. If the job's node has gone, HTCondor notices it within minutes",
	)
	w.ends()
	refused(http.StatusConflict, "there is no container to run anything in")
	c.Name = "other"
	refused(http.StatusNotFound, "there is no HTCJob other")
}

func TestACommandIsRunWhereANodeRuns(t *testing.T) {
	w, v := newWorkflow(t), &visits{}
	s := v.shells(w)
	c := commandAt(ofNodes("fit", 0, 1))
	c.Resource = v1alpha1.WorkflowResource
	_, err := s.Begin(t.Context(), c)
	require.ErrorContains(t, err, "there is no container to run anything in")
	w.sentFirst()
	w.node.set(func() { w.node.status, w.node.starts = condor.Running, 1 })
	w.changed(1, 1, func(n *ledger.Node) { n.Cluster, n.JobStatus = 9, int(condor.Running) })
	run, err := s.Begin(t.Context(), c)
	require.NoError(t, err)
	require.NoError(t, run(t.Context(), aggregate.Streams{}))
	require.Equal(t, [][2]int{{9, 0}}, v.at)
	c.Node.Step = "nothing"
	_, err = s.Begin(t.Context(), c)
	require.ErrorContains(t, err, `there is no step "nothing"`)
}

func TestOnlyWhoMayCreateExecMayRunCommands(t *testing.T) {
	var asked authorizationv1.SubjectAccessReviewSpec
	var status authorizationv1.SubjectAccessReviewStatus
	s := NewShells(
		Shells{
			Review: func(_ context.Context, r *authorizationv1.SubjectAccessReview,
				_ metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
				asked = r.Spec
				return &authorizationv1.SubjectAccessReview{Status: status}, nil
			},
		},
	)
	user := authenticationv1.UserInfo{
		Username: "anna",
		UID:      "1",
		Groups:   []string{"a"},
		Extra:    map[string]authenticationv1.ExtraValue{"scope": {"x"}},
	}
	q := aggregate.Query{Resource: "htcworkflows", Namespace: "ns", Name: "scan"}
	require.True(t, apierrors.IsForbidden(s.Authorize(t.Context(), user, q)))
	require.Equal(t, authorizationv1.SubjectAccessReviewSpec{
		User: "anna", UID: "1", Groups: []string{"a"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"x"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace:   "ns",
			Verb:        "create",
			Group:       "output.htc.cern.ch",
			Version:     "v1alpha1",
			Resource:    "htcworkflows",
			Subresource: "exec",
			Name:        "scan",
		},
	}, asked)
	status.Allowed = true
	require.NoError(t, s.Authorize(t.Context(), user, q))
	status.Denied = true
	require.Error(t, s.Authorize(t.Context(), user, q))
	status.Denied = false
	require.Error(t, s.Authorize(t.Context(), authenticationv1.UserInfo{}, q), "nobody is named")
}
