package kube

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/credential"
	"htc.cern.ch/htcd/internal/kube/v1alpha1"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/scheddtest"
)

func TestJobsAreSentAndRemovedAsTheNamespacesOwnAccount(t *testing.T) {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.apply(htcjob("hers"))
	require.Equal(t, "alice", w.schedd.Jobs()[0].Owner)
	w.delete("hers")
	require.Empty(t, w.schedd.Jobs())
	require.Nil(t, w.job("hers"))
}

func TestJobsOfBeforeTheNamespaceHadAnAccountAreRemovedAsTheCommonOne(t *testing.T) {
	w := newWorld(t)
	w.apply(htcjob("early"))
	w.accounts["default"] = "alice"
	w.delete("early")
	require.Empty(t, w.schedd.Jobs())
	require.Nil(t, w.job("early"))
}

func TestADeletionThatNeedsAnotherAccountSaysWhose(t *testing.T) {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.apply(htcjob("hers"))
	w.accounts["default"] = "bob"
	w.delete("hers")
	require.Len(t, w.schedd.Jobs(), 1)
	w.later(0)
	said := meta.FindStatusCondition(w.job("hers").Status.Conditions, v1alpha1.ConditionCredentials)
	require.Equal(t, metav1.ConditionFalse, said.Status)
	require.Equal(t, "OtherAccount", said.Reason)
	require.Contains(t, said.Message, "1 job of the account alice, such as 1.0,")
	require.Contains(t, said.Message, v1alpha1.AbandonAnnotation)

	w.accounts["default"] = "alice"
	w.SecretChanged("default")
	w.settle()
	require.Empty(t, w.schedd.Jobs())
	require.Nil(t, w.job("hers"))
}

var badPassword = &credential.Error{Reason: "BadPassword", Message: "Password incorrect"}

// ticketer gives every account a cache of its name, except those whose KDC or password fails, and every token a directory.
type ticketer map[string]error

func (f ticketer) Proof(_ context.Context, c credential.Credential) (credential.Proof, error) {
	if c.IsToken() {
		return credential.Proof{Identity: schedd.Identity{Tokens: "/tokens"}}, f["token"]
	}
	user := strings.TrimPrefix(c.String(), "account ")
	return credential.Proof{Identity: schedd.Identity{CCache: "/tickets/" + user}}, f[user]
}

// secretsOf are credentials over these Secrets, "namespace/name" to user name, or to "token".
func secretsOf(t *testing.T, perNamespace bool, refused ticketer, secrets map[string]string) *SecretCredentials {
	t.Helper()
	client := fake.NewClientset()
	for key, user := range secrets {
		namespace, name, err := cache.SplitMetaNamespaceKey(key)
		require.NoError(t, err)
		data := map[string][]byte{"username": []byte(user), "password": []byte("secret of " + user)}
		if user == "token" {
			data = map[string][]byte{"token": []byte("secret")}
		}
		_, err = client.CoreV1().Secrets(namespace).Create(t.Context(), &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	s := NewSecretCredentials(client, SecretOptions{Namespace: "htcd", Name: "kinit-secret", PerNamespace: perNamespace, Further: []string{"further"}}, refused)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(string) {}, func(string) {}) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	require.True(t, cache.WaitForCacheSync(ctx.Done(), s.HasSynced))
	return s
}

func TestWhoseTicketANamespaceGets(t *testing.T) {
	secrets := map[string]string{"htcd/kinit-secret": "robot", "physics/kinit-secret": "alice", "chemistry/kinit-secret": "bob", "empty/other": "eve", "physics/further": "carol", "biology/kinit-secret": "token"}
	for name, c := range map[string]struct {
		without   bool // --namespace-secrets
		namespace string
		secret    string
		refused   ticketer
		ccache    string
		tokens    string
		reason    string
		about     string
	}{
		"its own where it has a Secret":                {namespace: "physics", ccache: "/tickets/alice"},
		"another its own":                              {namespace: "chemistry", ccache: "/tickets/bob"},
		"the common one where it has none":             {namespace: "empty", ccache: "/tickets/robot"},
		"the common one in htcd's own namespace":       {namespace: "htcd", ccache: "/tickets/robot"},
		"the common one where that is not switched on": {without: true, namespace: "physics", ccache: "/tickets/robot"},
		"that of the Secret which is named":            {namespace: "physics", secret: "further", ccache: "/tickets/carol"},
		"its own by name":                              {namespace: "physics", secret: "kinit-secret", ccache: "/tickets/alice"},
		"none when what is named is not there":         {namespace: "empty", secret: "kinit-secret", reason: "SecretMissing", about: "empty"},
		"none when what is named may not be read":      {namespace: "empty", secret: "other", reason: "SecretUnreadable", about: "other"},
		"none when nothing may be named":               {without: true, namespace: "physics", secret: "further", reason: "SecretUnreadable", about: "further"},
		"its own token":                                {namespace: "biology", tokens: "/tokens"},
		"none when its own token has ended": {namespace: "biology", refused: ticketer{"token": &credential.Error{Reason: "TokenExpired"}},
			reason: "TokenExpired", about: "biology/kinit-secret"},
		"none when its own is refused":           {namespace: "physics", refused: ticketer{"alice": badPassword}, reason: "BadPassword"},
		"its own when the common one is refused": {namespace: "physics", refused: ticketer{"robot": badPassword}, ccache: "/tickets/alice"},
	} {
		t.Run(name, func(t *testing.T) {
			id, err := secretsOf(t, !c.without, c.refused, secrets).Identity(t.Context(), c.namespace, c.secret)
			require.Equal(t, schedd.Identity{CCache: c.ccache, Tokens: c.tokens}, id)
			if c.reason == "" {
				require.NoError(t, err)
				return
			}
			var e *CredentialError
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.reason, e.Reason)
			require.Contains(t, e.Message, cmp.Or(c.about, "physics/kinit-secret"))
		})
	}
}

func TestQuestionsAboutAllJobsGoAsWhoeverHasATicket(t *testing.T) {
	secrets := map[string]string{"htcd/kinit-secret": "robot", "physics/kinit-secret": "alice", "chemistry/kinit-secret": "bob"}
	silent := &credential.Error{Reason: "KDCUnreachable", Message: "Cannot contact any KDC"}
	for name, c := range map[string]struct {
		refused        ticketer
		ccache, reason string
	}{
		"the common account first":           {nil, "/tickets/robot", ""},
		"then the first namespace's":         {ticketer{"robot": badPassword}, "/tickets/bob", ""},
		"then the next one's":                {ticketer{"robot": badPassword, "bob": badPassword}, "/tickets/alice", ""},
		"nobody when the KDC answers nobody": {ticketer{"robot": badPassword, "bob": silent}, "", "KDCUnreachable"},
		"nobody when all are refused":        {ticketer{"robot": badPassword, "bob": badPassword, "alice": badPassword}, "", "BadPassword"},
		"a token after all tickets":          {ticketer{"robot": silent, "bob": silent, "token": nil}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			secrets, want := maps.Clone(secrets), schedd.Identity{CCache: c.ccache}
			if _, has := c.refused["token"]; has {
				secrets["astronomy/kinit-secret"], want.Tokens = "token", "/tokens"
			}
			id, err := secretsOf(t, true, c.refused, secrets).Any(t.Context())
			require.Equal(t, want, id)
			if c.reason != "" {
				var e *CredentialError
				require.True(t, errors.As(err, &e))
				require.Equal(t, c.reason, e.Reason)
			}
		})
	}
}

// Before it is known whether the namespace has an account, nothing is sent as the common one.
func TestSecretsThatCannotBeReadAreNotPassedOver(t *testing.T) {
	s := NewSecretCredentials(fake.NewClientset(), SecretOptions{Namespace: "htcd", Name: "kinit-secret", PerNamespace: true}, ticketer{})
	_, err := s.Identity(t.Context(), "physics", "")
	require.ErrorContains(t, err, "deploy/components/namespace-secrets")
	require.False(t, s.HasSynced())
}

func TestAHalfSpooledClusterOfAnotherAccountIsNotWaitedForInSilence(t *testing.T) {
	w := newWorld(t)
	w.accounts["default"] = "alice"
	w.schedd.Fail(scheddtest.Submit, scheddtest.Fault{Err: errBroken, After: true})
	w.apply(htcjob("hers"))
	w.schedd.Edit(1, -1, func(j *schedd.Job) {
		j.Status, j.HoldReasonCode, j.StageInFinish, j.QDate = schedd.Held, 16, 0, w.clock.Add(-time.Hour).Unix()
	})
	w.accounts["default"] = "bob"
	w.later(time.Hour)
	w.later(0)
	said := meta.FindStatusCondition(w.job("hers").Status.Conditions, v1alpha1.ConditionCredentials)
	require.NotNil(t, said)
	require.Equal(t, "OtherAccount", said.Reason)
}
