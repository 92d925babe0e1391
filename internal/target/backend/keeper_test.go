package backend

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"htc.cern.ch/htcd/internal/target/secrets"
)

func TestWhenTheFinalizerIsDue(t *testing.T) {
	for _, c := range []struct{ held, deleting, needed, due bool }{
		{needed: true, due: true},
		{needed: true, held: true},
		{needed: true, deleting: true}, // Kubernetes would refuse it
		{needed: true, held: true, deleting: true},
		{},
		{held: true, due: true},
		{held: true, deleting: true, due: true},
		{deleting: true},
	} {
		require.Equal(t, c.due, due(secrets.Own{Held: c.held, Deleting: c.deleting}, c.needed), "%+v", c)
	}
}

// oneSecret is an apiserver with one Secret of a namespace's own; it answers patches with answer.
type oneSecret struct {
	answer error
	unseen bool // the watch has not shown it yet
}

func (o *oneSecret) Own(string) []secrets.Own {
	if o.unseen {
		return nil
	}
	return []secrets.Own{{Name: "kinit-secret", Usual: true}}
}
func (o *oneSecret) Unseen(context.Context, string) (bool, error) { return o.unseen, o.answer }
func (o *oneSecret) Hold(context.Context, secrets.Own) error      { return o.answer }
func (o *oneSecret) LetGo(context.Context, secrets.Own) error     { return o.answer }

func TestThatSecretsMayNotBePatchedIsSaidOnceAndAgainAfterItWasMended(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("secrets"), "kinit-secret", errors.New("no rule"))
	apiserver, said := &oneSecret{}, 0
	k := &Keeper{Secrets: apiserver, Denied: func(secrets.Own, error) { said++ }}
	for _, c := range []struct {
		answer error
		said   int
	}{{forbidden, 1}, {forbidden, 1}, {nil, 1}, {forbidden, 2}} {
		apiserver.answer = c.answer
		leave, err := k.Hold(t.Context(), Account{Namespace: "physics"})
		require.NoError(t, err, "HTCJobs are more than their deletion")
		leave()
		require.Equal(t, c.said, said)
	}
}

// A watch of HTCJobs may be ahead of that of Secrets.
func TestTheCommonAccountIsNotTakenInPlaceOfASecretThatIsTooNew(t *testing.T) {
	apiserver := &oneSecret{unseen: true}
	k := &Keeper{Secrets: apiserver}
	_, is := errors.AsType[*CredentialError](k.MayBegin(t.Context(), Account{Namespace: "physics"}))
	require.True(t, is)
	require.NoError(t, k.MayBegin(t.Context(), Account{}), "it runs as the common account wherever it is")
	require.NoError(
		t,
		k.MayBegin(t.Context(), Account{Namespace: "physics", Secret: "further"}),
		"its identity needs that one",
	)
	apiserver.answer = errors.New("no answer")
	require.Error(t, k.MayBegin(t.Context(), Account{Namespace: "physics"}), "it is not known")
	apiserver.unseen = false
	require.NoError(t, k.MayBegin(t.Context(), Account{Namespace: "physics"}), "nobody is asked")
}
