package backend

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/secrets"
)

// there is the endpoint of all identities in these tests.
var there = schedd.Endpoint{Collector: "far", Schedd: "second"}

var badPassword = &credential.Error{Reason: "BadPassword", Message: "Password incorrect"}

// ticketer gives every account a cache with its name, except those whose KDC or password fails, and every token a
// directory.
type ticketer map[string]error

func (f ticketer) Proof(_ context.Context, c credential.Credential) (credential.Proof, error) {
	if c.IsToken() {
		return credential.Proof{Identity: schedd.Identity{Tokens: "/tokens"}}, f["token"]
	}
	user := strings.TrimPrefix(c.String(), "account ")
	return credential.Proof{Identity: schedd.Identity{CCache: "/tickets/" + user}}, f[user]
}

// secretsOf returns credentials over these Secrets, "namespace/name" to user name or to "token".
func secretsOf(t *testing.T, perNamespace bool, refused ticketer, users map[string]string) *SecretCredentials {
	t.Helper()
	client := fake.NewClientset()
	for key, user := range users {
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
	s := secrets.NewWatcher(
		client,
		secrets.Options{
			Namespace:    "htcd",
			Name:         "kinit-secret",
			PerNamespace: perNamespace,
			Further:      []string{"further"},
		},
	)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, func(string) {}, func(string) {}) }()
	t.Cleanup(func() { stop(); require.NoError(t, <-ended) })
	require.True(t, cache.WaitForCacheSync(ctx.Done(), s.HasSynced))
	return &SecretCredentials{Secrets: s, Proofs: refused}
}

func TestWhoseTicketANamespaceGets(t *testing.T) {
	users := map[string]string{
		"htcd/kinit-secret":      "robot",
		"physics/kinit-secret":   "alice",
		"chemistry/kinit-secret": "bob",
		"empty/other":            "eve",
		"physics/further":        "carol",
		"biology/kinit-secret":   "token",
	}
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
			id, err := secretsOf(
				t,
				!c.without,
				c.refused,
				users,
			).Identity(
				t.Context(),
				Target{there, Account{c.namespace, c.secret}},
			)
			if c.reason == "" {
				require.NoError(t, err)
				require.Equal(t, schedd.Identity{CCache: c.ccache, Tokens: c.tokens, Endpoint: there}, id)
				return
			}
			require.Zero(t, id)
			var e *CredentialError
			require.ErrorAs(t, err, &e)
			require.Equal(t, c.reason, e.Reason)
			require.Contains(t, e.Message, cmp.Or(c.about, "physics/kinit-secret"))
		})
	}
}

func TestQuestionsAboutAllJobsGoAsWhoeverHasATicket(t *testing.T) {
	users := map[string]string{
		"htcd/kinit-secret":      "robot",
		"physics/kinit-secret":   "alice",
		"chemistry/kinit-secret": "bob",
	}
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
			users, want := maps.Clone(users), schedd.Identity{CCache: c.ccache, Endpoint: there}
			if _, has := c.refused["token"]; has {
				users["astronomy/kinit-secret"], want.Tokens = "token", "/tokens"
			}
			id, err := secretsOf(t, true, c.refused, users).Any(t.Context(), there)
			if c.reason == "" {
				require.NoError(t, err)
				require.Equal(t, want, id)
			} else {
				require.Zero(t, id)
				var e *CredentialError
				require.True(t, errors.As(err, &e))
				require.Equal(t, c.reason, e.Reason)
			}
		})
	}
}

// While it is unknown whether the namespace has an account, nothing is sent as the common one.
func TestSecretsThatCannotBeReadAreNotPassedOver(t *testing.T) {
	unread := secrets.NewWatcher(
		fake.NewClientset(),
		secrets.Options{Namespace: "htcd", Name: "kinit-secret", PerNamespace: true},
	)
	s := &SecretCredentials{Secrets: unread, Proofs: ticketer{}}
	_, err := s.Identity(t.Context(), Target{Account: Account{Namespace: "physics"}})
	require.ErrorContains(t, err, "deploy/components/namespace-secrets")
	require.False(t, unread.HasSynced())
}
