//go:build !releases

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// condorToken is the Secret of deploy/overlays/generic.
const condorToken = "condor-token"

// tokenOf makes the lab's pool issue a token.
func tokenOf(b *trial.Bench, ask parts.TokenAsk) string {
	b.T.Helper()
	text, err := parts.Token(b.T.Context(), b.Lab, ask)
	require.NoError(b.T, err)
	return text
}

// keep writes a Secret, replacing any existing one, and returns a function that deletes it.
func keep(b *trial.Bench, namespace, name string, data map[string]string) (remove func(context.Context)) {
	b.T.Helper()
	client, err := kubernetes.NewForConfig(trial.Config(b.T))
	require.NoError(b.T, err)
	secrets := client.CoreV1().Secrets(namespace)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{}}
	for key, value := range data {
		secret.Data[key] = []byte(value)
	}
	_, err = secrets.Create(b.T.Context(), secret, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(b.T.Context(), secret, metav1.UpdateOptions{})
	}
	require.NoError(b.T, err)
	return func(ctx context.Context) { require.NoError(b.T, secrets.Delete(ctx, name, metav1.DeleteOptions{})) }
}

// generic returns the flags that make the lab's htcd that of deploy/overlays/generic, except for what the lab decides:
// where it listens, its directories and its namespace.
func generic(b *trial.Bench) []string {
	b.T.Helper()
	d := deploy(b.T, "../../deploy/overlays/generic")
	var settings, config corev1.ConfigMap
	var deployment appsv1.Deployment
	d.object("ConfigMap", "htcd-settings-", &settings)
	d.object("ConfigMap", "htcd-config-", &config)
	d.object("Deployment", "htcd", &deployment)
	for _, v := range deployment.Spec.Template.Spec.Containers[0].Env {
		settings.Data[v.Name] = v.Value
	}
	require.NotContains(b.T, settings.Data, "HTCD_KRB5_CONFIG")
	require.Equal(b.T, condorToken, settings.Data["HTCD_KINIT_SECRET"])
	require.Equal(b.T, "/etc/htcd/condor_config", settings.Data["HTCD_CONDOR_CONFIG"])
	require.Len(b.T, config.Data, 1, "and no krb5.conf")
	for _, own := range []string{
		"DATA", "TICKET_DIR", "LISTEN", "HEALTH_LISTEN", "POD_NAMESPACE", "CALLBACK_URL",
	} {
		require.Contains(b.T, settings.Data, "HTCD_"+own)
		delete(settings.Data, "HTCD_"+own)
	}

	world, err := parts.Open(b.Lab)
	require.NoError(b.T, err)
	file := b.Lab.Path("condor", "generic.conf")
	trust := "AUTH_SSL_CLIENT_CAFILE = " + parts.ReceiverCA(world) + "\n"
	require.NoError(b.T, os.WriteFile(file, []byte(config.Data["condor_config"]+parts.SiteOf(world)+trust), 0o644))
	settings.Data["HTCD_CONDOR_CONFIG"] = file
	settings.Data["HTCD_SCHEDD"] = world.Host()
	settings.Data["HTCD_COLLECTOR"] = fmt.Sprintf(
		"%s:%d",
		world.Host(),
		world.Ports.Condor,
	) // a host certificate is for a name
	flags := []string{"--krb5-config="}
	for name, value := range settings.Data {
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, "HTCD_"), "_", "-"))
		flags = append(flags, "--"+flag+"="+value)
	}
	return flags
}

func TestTheOverlayForAnyPoolGrantsItsOwnSecretAlone(t *testing.T) {
	t.Parallel()
	var role rbacv1.Role
	deploy(t, "../../deploy/overlays/generic").object("Role", "htcd", &role)
	for _, rule := range role.Rules {
		if rule.Resources[0] == "secrets" {
			require.Equal(t, []string{condorToken}, rule.ResourceNames)
		}
	}
}

// All tests share htcd's flags and the KDC, so this one runs alone. It does not use Kerberos.
func TestAPoolWithTokensAndWithoutKerberos(t *testing.T) {
	all := trial.New(t)
	ctx := t.Context()
	rules, err := filepath.Abs("testdata/tokens/rbac.yaml")
	require.NoError(t, err)
	_, err = all.Lab.Run(ctx, "kubectl", "apply", "-f", rules)
	require.NoError(t, err)
	common := keep(
		all,
		"default",
		condorToken,
		map[string]string{"token": tokenOf(all, parts.TokenAsk{Account: "robot", Life: time.Hour}) + "\n"},
	)
	flags := append(generic(all), "--namespace-secrets", "--pool-secrets=another-token,sci-token")
	htcd, kdc := all.Lab.Part("htcd"), all.Lab.Part("kdc")
	t.Cleanup(func() {
		ctx := context.WithoutCancel(ctx)
		require.NoError(t, kdc.Start(ctx))
		require.NoError(t, htcd.Restart(ctx))
		common(ctx)
		_, err := all.Lab.Run(ctx, "kubectl", "delete", "-f", rules)
		require.NoError(t, err)
	})
	all.Condor("condor_q", "false") // from now on the lab's own tools have their ticket for the schedd
	require.NoError(t, kdc.Stop(ctx))
	require.NoError(t, htcd.Restart(ctx, flags...))

	t.Run("accounts", func(t *testing.T) {
		t.Run("run their HTCJobs from beginning to end", func(t *testing.T) { t.Parallel(); accounts(t) })
		for name, c := range spoilt {
			t.Run(name, func(t *testing.T) { t.Parallel(); c.isExplained(t) })
		}
		t.Run("the doctor looks at", func(t *testing.T) {
			t.Parallel()
			found := doctor(t, all.Lab, flags...)
			require.Empty(t, problems(found), "%+v", found)
			require.Contains(t, found["ticket"].Message, "token of robot@"+parts.Domain+", good for")
			require.Contains(t, found["authorisation"].Message, "submissions of robot")
		})
		t.Run("the doctor looks at SciTokens", func(t *testing.T) { t.Parallel(); examined(t, all.Lab, flags) })
	})
}

// sciToken returns what the lab's issuer of SciTokens gives alice.
func sciToken(b *trial.Bench, claims map[string]any) map[string]string {
	b.T.Helper()
	text, err := parts.SciToken(b.Lab, "alice", claims)
	require.NoError(b.T, err)
	return map[string]string{"token": text}
}

// examined runs the doctor with SciTokens in place of the common account.
func examined(t *testing.T, l *lab.Lab, flags []string) {
	b := trial.New(t)
	flags = append(slices.Clone(flags), "--kinit-secret=sci-token")
	remove := keep(b, "default", "sci-token", sciToken(b, nil))
	t.Cleanup(func() { remove(context.WithoutCancel(t.Context())) })
	for name, c := range map[string]struct {
		claims          map[string]any
		left            int64 // seconds of its life, if it is not whole
		flags           []string
		check, says, to string
	}{
		"whole":                   {nil, 0, nil, "", "", ""},
		"almost at its end":       {nil, 240, nil, "ticket", "ends in", "a new one of the SciToken's issuer"},
		"for another audience":    {map[string]any{"aud": "https://elsewhere.example.org"}, 0, nil, "schedd", "does not accept this token, with iss", "tokens of this issuer"},
		"a pool that is a number": {nil, 0, []string{"--collector=" + pool(t, l)}, "schedd", "named by an address", "SEC_CLIENT_AUTHENTICATION_METHODS"},
		"for reading":             {map[string]any{"scope": "condor:/READ"}, 0, nil, "authorisation", "must grant reading and writing", "ALLOW_WRITE"},
	} {
		if c.left > 0 {
			c.claims = map[string]any{"exp": time.Now().Unix() + c.left}
		}
		keep(b, "default", "sci-token", sciToken(b, c.claims))
		found := doctor(t, l, append(slices.Clone(flags), c.flags...)...)
		if c.check == "" {
			require.Empty(t, problems(found), "%+v", found)
			require.Contains(t, found["ticket"].Message, "token of alice@example.org by "+parts.SciTokenIssuer)
			require.Contains(t, found["authorisation"].Message, "submissions of alice")
			continue
		}
		require.Equal(t, []string{c.check}, problems(found), "%s: %+v", name, found)
		require.Contains(t, found[c.check].Message, c.says, name)
		require.Contains(t, found[c.check].Do, c.to, name)
	}
}

// pool returns the collector by its address.
func pool(t *testing.T, l *lab.Lab) string {
	t.Helper()
	world, err := parts.Open(l)
	require.NoError(t, err)
	return fmt.Sprintf("%s:%d", world.Address, world.Ports.Condor)
}

func accounts(t *testing.T) {
	theirs, hers := trial.New(t), trial.New(t)
	alice := tokenOf(hers, parts.TokenAsk{Account: "alice"}) // without an expiry
	keep(hers, hers.Namespace, condorToken, map[string]string{"token": alice})
	keep(theirs, theirs.Namespace, "another-token", map[string]string{"token": alice})
	keep(theirs, theirs.Namespace, "sci-token", sciToken(theirs, nil))

	const source = "echo \"I am $1\"; echo made > made; exit 3\n"
	named := func(secret string) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{SecretName: secret} }
	}
	ran := map[string]*v1alpha1.HTCJob{
		"robot":                         theirs.Create("job", source, trial.Unpacked),
		"alice":                         hers.Create("job", source, trial.Unpacked),
		"alice, whose Secret was named": theirs.Create("chosen", source, trial.Unpacked, named("another-token")),
		"alice, with a SciToken":        theirs.Create("sci", source, trial.Unpacked, named("sci-token")),
	}
	kept := hers.Create("kept", "sleep 1000\n", trial.Unpacked)
	sciKept := theirs.Create("sci-kept", "sleep 1000\n", trial.Unpacked, named("sci-token"))
	for account, job := range ran {
		b := hers
		if job.Namespace == theirs.Namespace {
			b = theirs
		}
		ended := b.Fetched(job.Name)
		require.EqualValues(t, 3, *ended.Status.Failures[0].ExitCode)
		require.Equal(t, "callback", b.Source(ended))
		require.Equal(t, "I am 0\n", b.Output(ended, 0))
		require.Equal(t, "made\n", b.File(ended, 0, "made"))
		owner, _, _ := strings.Cut(account, ",")
		require.Equal(t, []string{ended.Status.JobID[0] + " " + owner}, left(b, ended, "Owner"), account)
	}

	running := hers.Phase("kept", v1alpha1.PhaseRunning)
	require.Equal(t, []string{running.Status.JobID[0] + " alice"}, hers.Condor("condor_q", trial.Tagged(kept), "Owner"))
	theirs.Phase("sci-kept", v1alpha1.PhaseRunning)
	gone(hers)
	gone(theirs)
	require.Empty(t, hers.Condor("condor_q", trial.Tagged(kept)))
	require.Empty(t, theirs.Condor("condor_q", trial.Tagged(sciKept)))
}

// gone deletes the HTCJobs while their accounts still exist.
func gone(b *trial.Bench) {
	b.T.Helper()
	b.Kubectl("delete", "htcjob", "--all", "--timeout="+trial.Patience.String())
}

// spoiltToken is what is wrong with a token, and how it is reported.
type spoiltToken struct {
	secret            func(*trial.Bench) map[string]string
	condition, reason string
	says              string
}

func issued(claims map[string]any) func(*trial.Bench) map[string]string {
	return func(b *trial.Bench) map[string]string { return sciToken(b, claims) }
}

func asked(ask parts.TokenAsk) func(*trial.Bench) map[string]string {
	return func(b *trial.Bench) map[string]string { return map[string]string{"token": tokenOf(b, ask)} }
}

var spoilt = map[string]spoiltToken{
	"whose token is something else": {
		func(*trial.Bench) map[string]string { return map[string]string{"token": "hush.hush"} },
		v1alpha1.ConditionCredentials, "InvalidCredential", "three parts",
	},
	"whose Secret has a password, too": {
		func(b *trial.Bench) map[string]string {
			return map[string]string{
				"token":    tokenOf(b, parts.TokenAsk{Account: "alice"}),
				"username": "alice",
				"password": parts.Passwords["alice"],
			}
		},
		v1alpha1.ConditionCredentials, "InvalidCredential", "token beside username",
	},
	"whose token has ended": {
		func(b *trial.Bench) map[string]string {
			data := asked(parts.TokenAsk{Account: "alice", Life: time.Second})(b)
			end := time.Now().Add(2 * time.Second) // token times are whole seconds
			b.Eventually(func() bool { return time.Now().After(end) }, func() string { return "the time stands still" })
			return data
		},
		v1alpha1.ConditionCredentials, "TokenExpired", "the token of alice@" + parts.Domain + " ended at",
	},
	"whose token is of another pool": {
		asked(parts.TokenAsk{Account: "alice", Issuer: "elsewhere.invalid"}),
		v1alpha1.ConditionCredentials, "Credentials", "TRUST_DOMAIN",
	},
	"whose SciToken has ended": {
		issued(map[string]any{"exp": 1_700_000_000}),
		v1alpha1.ConditionCredentials,
		"TokenExpired",
		"the token of alice@example.org by " + parts.SciTokenIssuer + " ended at",
	},
	"whose SciToken is for another audience": {
		issued(map[string]any{"aud": "https://elsewhere.example.org"}),
		v1alpha1.ConditionCredentials, "Credentials", "does not accept this token, with iss",
	},
	"whose SciToken is of an unknown issuer": {
		issued(map[string]any{"iss": "https://127.0.0.1:9/elsewhere"}),
		v1alpha1.ConditionCredentials,
		"Credentials",
		`does not accept this token, with iss "https://127.0.0.1:9/elsewhere"`,
	},
	"whose SciToken is for reading": {
		issued(map[string]any{"scope": "condor:/READ"}),
		v1alpha1.ConditionSubmitted, "NotAuthorised", "must grant reading and writing",
	},
	"whose token is for reading": {
		asked(parts.TokenAsk{Account: "alice", Only: []string{"READ"}}),
		v1alpha1.ConditionSubmitted, "NotAuthorised", "DENIED",
	},
}

func (s spoiltToken) isExplained(t *testing.T) {
	b := trial.New(t)
	data := s.secret(b)
	keep(b, b.Namespace, condorToken, data)
	// Secrets and HTCJobs arrive by separate watches: an HTCJob that arrives first still goes as the common account.
	var job *v1alpha1.HTCJob
	for i := 0; job == nil; i++ {
		name := fmt.Sprintf("try-%d", i)
		b.Create(name, "exit 0\n", trial.Unpacked)
		now := b.Until(name, "submitted or refused", func(job *v1alpha1.HTCJob) bool {
			return len(job.Status.JobID) > 0 || s.told(job)
		})
		if s.told(now) {
			job = now
		}
	}
	said := b.Condition(job, s.condition)
	require.Contains(t, said.Message, s.says)
	described := b.Kubectl("describe", "htcjob", job.Name)
	require.Contains(t, described, s.reason)
	require.NotContains(t, described, data["token"])
	require.NotEqual(
		t,
		"False",
		string(conditionStatus(job, v1alpha1.ConditionBackendReachable)),
		"the schedd is where it was",
	)

	keep(
		b,
		b.Namespace,
		condorToken,
		map[string]string{"token": tokenOf(b, parts.TokenAsk{Account: "alice", Life: time.Hour})},
	)
	ended := b.Ended(job.Name)
	require.Equal(t, v1alpha1.PhaseSucceeded, ended.Status.Phase)
	require.Equal(t, []string{ended.Status.JobID[0] + " alice"}, left(b, ended, "Owner"))
	gone(b)
}

// told reports whether an HTCJob shows the problem.
func (s spoiltToken) told(job *v1alpha1.HTCJob) bool {
	for _, c := range job.Status.Conditions {
		if c.Type == s.condition && c.Status == metav1.ConditionFalse && c.Reason == s.reason {
			return true
		}
	}
	return false
}

func conditionStatus(job *v1alpha1.HTCJob, kind string) metav1.ConditionStatus {
	for _, c := range job.Status.Conditions {
		if c.Type == kind {
			return c.Status
		}
	}
	return metav1.ConditionUnknown
}
