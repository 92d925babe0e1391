package doctor

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/fake"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/notify"
	"htc.cern.ch/htcd/internal/schedd"
	"htc.cern.ch/htcd/internal/schedd/condor"
	"htc.cern.ch/htcd/internal/schedd/krb"
	"htc.cern.ch/htcd/internal/schedd/token"
	"htc.cern.ch/htcd/internal/target/credential"
	"htc.cern.ch/htcd/internal/target/pool"
)

func TestACheckThatStandsOnAProblemIsSkippedAndTheOthersAreMade(t *testing.T) {
	says := func(message string, err error) func(context.Context) (string, error) {
		return func(context.Context) (string, error) { return message, err }
	}
	var found []Finding
	well := run(t.Context(), []Check{
		{Name: "a", Try: says("fine", nil)},
		{Name: "b", Needs: []string{"a"}, Try: says("", &Trouble{"broken", "mend it"})},
		{Name: "c", Needs: []string{"a", "b"}, Try: says("never said", nil)},
		{Name: "d", Needs: []string{"c"}},
		{Name: "e", Try: says("", notHere("not wanted"))},
		{Name: "f", Try: says("", errors.New("something"))},
	}, time.Second, func(f Finding) { found = append(found, f) })
	require.False(t, well)
	require.Equal(t, []Finding{
		{"a", OK, "fine", ""},
		{"b", Problem, "broken", "mend it"},
		{"c", Skipped, "needs b", ""},
		{"d", Skipped, "needs c", ""},
		{"e", Skipped, "not wanted", ""},
		{"f", Problem, "something", "see docs/troubleshoot.md"},
	}, found)
	require.True(
		t,
		run(t.Context(), []Check{{Name: "e", Try: says("", notHere("not wanted"))}}, time.Second, func(Finding) {}),
	)
}

func TestNoCheckTakesLongerThanTheBound(t *testing.T) {
	hangs := Check{Name: "a", Try: func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }}
	require.False(t, run(t.Context(), []Check{hangs}, time.Millisecond, func(Finding) {}))
}

func TestWhatMaySettleIsTriedAgain(t *testing.T) {
	tries := 0
	settles := Check{Name: "a", Settles: time.Second, Try: func(context.Context) (string, error) {
		if tries++; tries == 1 {
			return "", errors.New("not yet")
		}
		return "now", nil
	}}
	message, err := settled(t.Context(), settles)
	require.NoError(t, err)
	require.Equal(t, "now", message)

	never := Check{
		Name:    "a",
		Settles: time.Millisecond,
		Try:     func(context.Context) (string, error) { return "", errors.New("never") },
	}
	_, err = settled(t.Context(), never)
	require.ErrorContains(t, err, "never")
}

// shipped are the rights that a manifest grants, its Role or ClusterRole first.
func shipped(t *testing.T, file string, namespace func(resource string) string) []Right {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../deploy", file))
	require.NoError(t, err)
	var role rbacv1.ClusterRole
	require.NoError(t, yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096).Decode(&role))
	var all []Right
	for _, rule := range role.Rules {
		names := rule.ResourceNames
		if names == nil {
			names = []string{""}
		}
		for _, resource := range rule.Resources {
			resource, sub, _ := cut(resource)
			for _, name := range names {
				for _, verb := range rule.Verbs {
					all = append(all, Right{verb, rule.APIGroups[0], resource, sub, namespace(resource), name})
				}
			}
		}
	}
	return all
}

func cut(resource string) (string, string, bool) {
	before, after, found := bytes.Cut([]byte(resource), []byte("/"))
	return string(before), string(after), found
}

func TestTheRightsAreThoseThatDeployGrants(t *testing.T) {
	everywhere := func(string) string { return "" }
	granted := slices.Concat(
		shipped(t, "base/rbac/clusterrole.yaml", everywhere),
		shipped(t, "base/rbac/role.yaml", func(string) string { return "htcd" }),
		shipped(t, "components/namespace-secrets/clusterrole.yaml", everywhere),
		shipped(t, "components/logs-pod/clusterrole.yaml", everywhere),
		shipped(t, "components/output/clusterrole.yaml", everywhere),
		shipped(t, "components/kueue/clusterrole.yaml", everywhere),
	)
	files, err := filepath.Glob("../../../deploy/components/*/clusterrole.yaml")
	require.NoError(t, err)
	require.Len(
		t,
		files,
		5,
		"another component may grant something, too; job-secrets grants nothing until it is bound in a namespace",
	)
	for i, r := range granted {
		if r.Name == "extension-apiserver-authentication" {
			granted[i].Namespace = "kube-system" // where the one of that name is
		}
	}
	require.ElementsMatch(t, granted, Rights(Place{
		Own:             "htcd",
		Lease:           "htcd",
		Secret:          "kinit-secret",
		SecretNamespace: "htcd",
		NamespaceSecrets: []string{
			"kinit-secret",
		},
		Elect:    true,
		Output:   true,
		LogsPods: true,
		Kueue:    true,
		StandsBy: true,
	}))
	for _, r := range Rights(Place{}) {
		require.NotContains(
			t,
			[]string{"leases", "apiservices", "pods"},
			r.Resource,
			"not needed without leader election, output and Pods",
		)
	}
	require.Equal(
		t,
		"patch htcjobs.htc.cern.ch/status in physics",
		Right{"patch", "htc.cern.ch", "htcjobs", "status", "physics", ""}.String(),
	)
}

func TestFieldsThatACRDLacksAreNamed(t *testing.T) {
	missing := missingFields(
		reflect.TypeFor[v1alpha1.HTCJob](),
		schema{Properties: map[string]schema{"apiVersion": {}, "kind": {}, "metadata": {}, "spec": {}}},
	)
	require.Contains(t, missing, "spec.script")
	require.Contains(t, missing, "spec.suspend")
	require.Contains(t, missing, "status")
	require.NotContains(t, missing, "spec")
	require.NotContains(t, missing, "metadata")
}

// served is what the apiserver shows of a CRD of deploy/base/crd.
func served(t *testing.T, resource string) schema {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/base/crd/htc.cern.ch_" + resource + ".yaml")
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Versions []struct{ Schema map[string]schema }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &crd))
	return crd.Spec.Versions[0].Schema["openAPIV3Schema"]
}

func TestFieldsAreLookedForWhereverTheyAre(t *testing.T) {
	for _, kind := range kinds {
		require.Empty(t, missingFields(kind, served(t, strings.ToLower(kind.Name())+"s")), kind.Name())
	}
	job, flow := served(t, v1alpha1.Resource), served(t, v1alpha1.WorkflowResource)
	spec := job.Properties["spec"].Properties
	delete(spec, "retries")                           // of a struct that is a part of the spec's
	delete(spec["inputs"].Items.Properties, "jobRef") // in a list
	require.Equal(t, []string{"spec.inputs.jobRef", "spec.retries"},
		slices.Sorted(slices.Values(missingFields(reflect.TypeFor[v1alpha1.HTCJob](), job))))
	delete(flow.Properties["spec"].Properties["steps"].Items.Properties["job"].Properties, "script")
	require.Equal(t, []string{"spec.steps.job.script"}, missingFields(reflect.TypeFor[v1alpha1.HTCWorkflow](), flow))
}

func TestAVolumeIsTriedAndLeftAsItWas(t *testing.T) {
	data := t.TempDir()
	ledger := filepath.Join(data, "sqlite", "htcjobs.db")
	message, err := volume(Volume{Data: data, Ledger: ledger, KeepFree: 1}).Try(t.Context())
	require.NoError(t, err)
	require.Contains(t, message, "can be written, keeps locks")
	left, err := os.ReadDir(data)
	require.NoError(t, err)
	require.Empty(t, left)

	_, err = volume(Volume{Data: data, Ledger: ledger, KeepFree: 1 << 60}).Try(t.Context())
	require.ErrorContains(t, err, "less than --keep-free=1Ei")

	_, err = volume(
		Volume{Data: "/nowhere/data", Ledger: "/nowhere/data/sqlite/htcjobs.db", KeepFree: 1},
	).Try(t.Context())
	require.ErrorContains(t, err, "does not exist")

	_, err = volume(Volume{Data: "/proc/self", Ledger: "/proc/self/htcjobs.db", KeepFree: 1}).Try(t.Context())
	require.ErrorContains(t, err, "cannot be written")
}

func TestWhatKeepsAVolumeFromBeingWrittenIsToldApart(t *testing.T) {
	for name, c := range map[string]struct {
		err      error
		says, do string
	}{
		"no space":  {&fs.PathError{Op: "write", Path: "/data/probe", Err: unix.ENOSPC}, "is full, ", "enlarge the volume"},
		"a quota":   {&fs.PathError{Op: "write", Path: "/data/probe", Err: unix.EDQUOT}, "is full, ", "(or the quota)"},
		"read-only": {&fs.PathError{Op: "mkdir", Path: "/data/probe", Err: unix.EROFS}, "read-only file system", "mount the volume so"},
		"another's": {&fs.PathError{Op: "mkdir", Path: "/data/probe", Err: unix.EACCES}, "permission denied", "by fsGroup of the pod for a new one, by chown -R"},
	} {
		t.Run(name, func(t *testing.T) {
			trouble := unwritten(t.TempDir(), c.err)
			require.Contains(t, trouble.What, c.says)
			require.Contains(t, trouble.Do, c.do)
		})
	}
}

func TestAFileThatNobodyLocksIsSeenUnlocked(t *testing.T) {
	file := filepath.Join(t.TempDir(), "f")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	_, err := lockSeen(filepath.Join(filepath.Dir(file), "none"))
	require.Error(t, err)
}

func TestWhoAnswersAtTheCallbackURLIsTold(t *testing.T) {
	htcd := httptest.NewServer(notify.NewReceiver(nil, notify.Options{}, zerolog.Nop()))
	defer htcd.Close()
	message, err := receiver(htcd.URL+notify.Path, nil).Try(t.Context())
	require.NoError(t, err)
	require.Contains(t, message, "not from the execute nodes")

	_, err = receiver(htcd.URL+"/elsewhere", nil).Try(t.Context())
	require.ErrorContains(t, err, "404, and it is not htcd")

	other := httptest.NewServer(http.RedirectHandler("https://login.example.org", http.StatusFound))
	defer other.Close()
	_, err = receiver(other.URL+notify.Path, nil).Try(t.Context())
	require.ErrorContains(t, err, "answers 302, and it is not htcd")

	other.Close()
	_, err = receiver(other.URL+notify.Path, nil).Try(t.Context())
	require.ErrorContains(t, err, "nobody answers")
}

// The ledger, which the doctor does not open, may be locked while everything else is well.
func TestWhatHTCdWaitsForIsToldInItsWords(t *testing.T) {
	status, words := http.StatusOK, "ready\n"
	htcd := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		require.Equal(t, "/readyz", request.URL.Path)
		w.WriteHeader(status)
		_, _ = w.Write([]byte(words))
	}))
	defer htcd.Close()
	address := htcd.Listener.Addr().String()
	message, err := ready(address).Try(t.Context())
	require.NoError(t, err)
	require.Equal(t, "htcd says: ready", message)

	status, words = http.StatusServiceUnavailable, "the ledger cannot be written: database is locked\n"
	_, err = ready(":" + address[strings.LastIndex(address, ":")+1:]).Try(t.Context())
	require.ErrorAs(t, err, new(*Trouble))
	require.EqualError(t, err, "htcd is not ready: the ledger cannot be written: database is locked")

	status = http.StatusNotFound
	_, err = ready(address).Try(t.Context())
	require.ErrorAs(t, err, new(notHere), "something else has the port")
	htcd.Close()
	for _, nobody := range []string{address, ":0", ""} {
		_, err = ready(nobody).Try(t.Context())
		require.ErrorAs(t, err, new(notHere), "%q", nobody)
	}
}

func TestTheAPIServicesOwnWordsAreHandedOn(t *testing.T) {
	message, err := available([]byte(`{"status":{"conditions":[{"type":"Available","status":"True"}]}}`))
	require.NoError(t, err)
	require.Contains(t, message, "forwards to htcd")
	_, err = available(
		[]byte(
			`{"status":{"conditions":[{"type":"Available","status":"False","reason":"MissingEndpoints","message":"no addresses"}]}}`,
		),
	)
	require.ErrorContains(t, err, "MissingEndpoints: no addresses")
	_, err = available([]byte(`{}`))
	require.ErrorContains(t, err, "has not checked yet")
}

func TestClocksMayDifferAsKerberosAllows(t *testing.T) {
	now := time.Date(2026, 11, 21, 5, 0, 0, 0, time.UTC)
	for off, well := range map[time.Duration]bool{0: true, 4 * time.Minute: true, -4 * time.Minute: true,
		6 * time.Minute: false, -6 * time.Minute: false} {
		_, err := skew(now.Add(off).Format(http.TimeFormat), now)
		require.Equal(t, well, err == nil, "%s: %v", off, err)
	}
	_, err := skew("", now)
	require.ErrorAs(t, err, new(notHere))
}

func TestASecretIsReadAndATokenLookedAt(t *testing.T) {
	encode := base64.RawURLEncoding.EncodeToString
	now := time.Unix(1_800_000_000, 0)
	made := func(payload string) string {
		return encode(
			[]byte(`{"kid":"POOL"}`),
		) + "." + encode(
			[]byte(`{"iss":"i","sub":"alice@lab.htcd"`+payload+`}`),
		) + "." + encode(
			[]byte("signed"),
		)
	}
	for name, c := range map[string]struct {
		data       map[string]string
		says, then string
		do         string
	}{
		"username alone":         {map[string]string{"username": "robot"}, credential.Keys, "", "nothing else"},
		"a token and a password": {map[string]string{"token": "x", "password": "y"}, "beside", "", "nothing else"},
		"something else":         {map[string]string{"token": "hush"}, "a token of secret", "not one of HTCondor's", credential.Keys},
		"a token that has ended": {map[string]string{"token": made(`,"exp":1799999999`)}, "a token of secret", "ended at", "condor_token_create"},
		"a token about to end":   {map[string]string{"token": made(`,"exp":1800000600`)}, "a token of secret", "the token of alice@lab.htcd ends in 10m0s", "condor_token_create"},
		"a token for a while":    {map[string]string{"token": made(`,"exp":1800007200`)}, "a token of secret", "token of alice@lab.htcd, good for 2h0m0s", ""},
		"a token without an end": {map[string]string{"token": made("")}, "a token of secret", "has no end", ""},
	} {
		t.Run(name, func(t *testing.T) {
			data := map[string][]byte{}
			for key, value := range c.data {
				data[key] = []byte(value)
			}
			core := fake.NewClientset(
				&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "htcd", Name: "condor-token"}, Data: data},
			)
			keeper := &credential.Keeper{
				Tickets: krb.New(
					krb.Options{Dir: t.TempDir()},
				), Tokens: token.New(token.Options{Dir: t.TempDir(), Now: func() time.Time { return now }}),
			}
			t.Cleanup(func() { require.NoError(t, keeper.Close()) })
			var cred credential.Credential
			var id schedd.Identity
			tell := func(message string, err error) string {
				require.NotContains(t, message, "hush")
				if err == nil {
					return message
				}
				trouble, ok := errors.AsType[*Trouble](err)
				require.True(t, ok)
				require.Contains(t, trouble.Do, c.do)
				return trouble.What
			}
			message, err := secret(core, Place{Secret: "condor-token", SecretNamespace: "htcd"}, &cred).Try(t.Context())
			require.Contains(t, tell(message, err), c.says)
			if c.then == "" {
				require.Error(t, err)
				return
			}
			require.NoError(t, err)
			message, err = ticket(keeper, &cred, &id, func() time.Time { return now }).Try(t.Context())
			require.Contains(t, tell(message, err), c.then)
			require.Equal(t, c.do == "", err == nil)
			if err == nil {
				require.DirExists(t, id.Tokens)
			}
		})
	}
}

func TestHTCondorsVersionIsComparedByNumber(t *testing.T) {
	for version, well := range map[string]bool{"23.9.6": true, "10.0.1": true, "9.2.0": true, "9.1.9": false, "8.9.13": false, "new": false} {
		require.Equal(t, well, tested(version), version)
	}
}

func TestWhatToDoFollowsTheKindOfFailure(t *testing.T) {
	do := func(err error) string {
		trouble, ok := errors.AsType[*Trouble](err)
		require.True(t, ok)
		return trouble.Do
	}
	require.Contains(t, do(ticketTrouble(&credential.Error{Reason: "BadPassword", Message: "x"})), "present password")
	require.Contains(t, do(ticketTrouble(&credential.Error{Reason: "KDCUnreachable", Message: "x"})), "port 88")
	require.Contains(t, do(ticketTrouble(errors.New("x"))), "--ticket-dir")
	require.Contains(t, do(scheddTrouble("", &condor.Error{Kind: condor.NotAuthorised})), "ALLOW_WRITE")
	require.Contains(
		t,
		do(scheddTrouble("", &condor.Error{Kind: condor.Credentials})),
		"SEC_CLIENT_AUTHENTICATION_METHODS",
	)
	require.Contains(t, do(scheddTrouble("", &condor.Error{Kind: condor.Unreachable})), "9618")
}

func TestWithoutAKubeconfigTheRestIsStillLookedAt(t *testing.T) {
	var found []Finding
	checks := Checks(Patient{
		ConfigError: errors.New(
			"no such file",
		),
		Condor: schedd.New(schedd.Options{BinDir: "/nowhere"}),
		BinDir: "/nowhere",
		Volume: Volume{
			Data:   t.TempDir(),
			Ledger: filepath.Join(t.TempDir(), "htcjobs.db"),
		},
		CallbackURL: "http://127.0.0.1:1/cloudevents",
		Now:         time.Now,
	})
	for i := range checks {
		checks[i].Settles = 0
	}
	require.False(t, run(t.Context(), checks, time.Minute, func(f Finding) { found = append(found, f) }))
	var verdicts []string
	for _, f := range found {
		verdicts = append(verdicts, f.Check+" "+string(f.Verdict))
	}
	require.Equal(t, []string{
		"kubeconfig problem",
		"kubernetes skipped",
		"clock skipped",
		"rights skipped",
		"crd skipped",
		"volume ok",
		"tools problem",
		"secret skipped",
		"ticket skipped",
		"schedd skipped",
		"authorisation skipped",
		"workflows skipped",
		"pools skipped",
		"ready skipped",
		"receiver problem",
		"output skipped",
	}, verdicts)
}

func TestPoolsThatAreWrongAreNamed(t *testing.T) {
	named := func(name string, spec v1alpha1.HTCPoolSpec) v1alpha1.HTCPool {
		p := v1alpha1.HTCPool{Spec: spec}
		p.Name = name
		return p
	}
	one, two := named("one", v1alpha1.HTCPoolSpec{Default: true}), named("two", v1alpha1.HTCPoolSpec{Default: true})
	require.NoError(t, wrongPools([]v1alpha1.HTCPool{one}, pool.Rules{}))
	require.ErrorContains(
		t,
		wrongPools([]v1alpha1.HTCPool{one, two}, pool.Rules{}),
		"several HTCPools are the default: one, two",
	)
	bad := named("bad", v1alpha1.HTCPoolSpec{Defaults: &v1alpha1.PoolDefaults{HTCOpts: "executable = x"}})
	require.ErrorContains(
		t,
		wrongPools([]v1alpha1.HTCPool{one, bad}, pool.Rules{}),
		"HTCPool bad cannot be used until its administrator mends it: defaults: htcopts, line 1",
	)
}

func TestAPoolsScheddsAreAskedAsAnAccountThatMayNotBeTheirs(t *testing.T) {
	refusal := &condor.Error{Kind: condor.NotAuthorised, Command: "condor_ping", Stderr: "denied"}
	silence := &condor.Error{Kind: condor.Unreachable, Command: "condor_ping", Stderr: "nobody answers"}
	own := &v1alpha1.PoolAccount{SecretName: "grid"}
	for name, c := range map[string]struct {
		account *v1alpha1.PoolAccount
		answers map[string]error
		want    string // what is said, and what is to be done
	}{
		"they answer":                          {nil, nil, ""},
		"the common account is refused":        {nil, map[string]error{"a": refusal}, "schedd a: condor_ping: denied; " + notLetIn},
		"where others send that is an answer":  {own, map[string]error{"a": refusal}, ""},
		"one is silent, and the other refuses": {own, map[string]error{"a": refusal, "b": silence}, "schedd b: condor_ping: nobody answers; make sure"},
		"both are named":                       {nil, map[string]error{"a": silence, "b": silence}, "schedd a: condor_ping: nobody answers; schedd b: condor_ping: nobody answers; make sure"},
	} {
		p := v1alpha1.HTCPool{Spec: v1alpha1.HTCPoolSpec{Schedds: []v1alpha1.ScheddName{"a", "b"}, Account: c.account}}
		got := ""
		if err := away(p, func(schedd string) error { return c.answers[schedd] }); err != nil {
			trouble, is := errors.AsType[*Trouble](scheddTrouble("", err))
			require.True(t, is, name)
			got = trouble.What + "; " + trouble.Do
		}
		if c.want == "" {
			require.Empty(t, got, name)
		} else {
			require.Contains(t, got, c.want, name)
		}
	}
}
