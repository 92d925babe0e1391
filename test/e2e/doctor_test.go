//go:build !releases

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/test/lab"
	"htc.cern.ch/htcd/test/trial"
)

// finding is one line of htcd doctor -o json.
type finding struct{ Check, Verdict, Message, Do string }

// doctor runs htcd doctor as the active htcd's account, with its environment.
func doctor(t *testing.T, l *lab.Lab, args ...string) map[string]finding {
	t.Helper()
	out, err := l.Run(t.Context(), "htcd", append([]string{"doctor", "-o", "json"}, args...)...)
	var said struct {
		OK       bool
		Findings []finding
	}
	require.NoError(t, json.Unmarshal([]byte(out), &said), "%s %v", out, err)
	require.Equal(t, said.OK, err == nil, "the exit code says the same")
	found := map[string]finding{}
	for _, f := range said.Findings {
		found[f.Check] = f
	}
	return found
}

// problems returns the names of the checks that found one.
func problems(found map[string]finding) []string {
	names := []string{}
	for name, f := range found {
		if f.Verdict == "problem" {
			names = append(names, name)
		}
	}
	return names
}

func TestTheDoctorFindsAWorkingHTCdWellAndDoesNotDisturbIt(t *testing.T) {
	b := trial.New(t)
	lease := func() string {
		out, err := b.Lab.Run(
			t.Context(),
			"kubectl",
			"-n",
			"default",
			"get",
			"lease",
			"htcd",
			"-o",
			"jsonpath={.spec.holderIdentity} {.spec.leaseTransitions}",
		)
		require.NoError(t, err)
		return out
	}
	before := lease()
	b.Script("beside", "sleep 2")
	for _, f := range doctor(t, b.Lab) {
		require.Equal(t, "ok", f.Verdict, "%+v", f)
	}
	require.EqualValues(t, 1, b.Ended("beside").Status.Succeeded)
	require.Equal(t, before, lease())
}

// Everything broken here is broken only for the doctor.
func TestTheDoctorNamesWhatIsWrong(t *testing.T) {
	b := trial.New(t)
	apply := func(object string) {
		b.ApplyText(object)
	}
	apply(
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "kinit-secret"}, "stringData": {"username": "robot", "password": "wrong"}}`,
	)
	apply(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "htcd"}, "rules": [
		{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["kinit-secret"], "verbs": ["list", "watch"]}]}`)
	apply(`{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "htcd"},
		"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "htcd"},
		"subjects": [{"kind": "ServiceAccount", "name": "htcd", "namespace": "default"}]}`)
	for name, c := range map[string]struct {
		args    []string
		check   string
		says    string
		do      string
		skipped []string
	}{
		"rights that the account has not": {
			[]string{"--pod-namespace", b.Namespace}, "rights",
			"create leases.coordination.k8s.io in " + b.Namespace + "; get leases.coordination.k8s.io htcd", "deploy/base/rbac", []string{"output"},
		},
		"a component that is not installed": {
			[]string{"--namespace-secrets", "--pool-secrets", "another"}, "rights", "list secrets another", "deploy/components", nil,
		},
		"a password that is wrong": {
			[]string{"--kinit-secret-namespace", b.Namespace}, "ticket", "Password incorrect", "present password", []string{"schedd", "authorisation"},
		},
		"a volume that cannot be written": {
			[]string{"--data", "/etc"}, "volume", "cannot be written: mkdir", "mount the volume so that it can be written", nil,
		},
		"tools that are not there": {
			[]string{"--condor-bin-dir", "/nowhere"}, "tools", "not found: kinit, condor_submit", "--condor-bin-dir", []string{"schedd", "authorisation"},
		},
		"a schedd that nobody knows": {
			[]string{"--schedd", "nowhere.example.org"}, "schedd", "has no record of schedd nowhere.example.org: it is stopped, or it has another name", "--schedd", []string{"authorisation"},
		},
		"a callback URL that leads elsewhere": {
			[]string{"--callback-url", "http://127.0.0.1:1/cloudevents"}, "receiver", "nobody answers", "Ingress", nil,
		},
		"an APIService that nobody answers": {
			[]string{"--output-listen="}, "output", "no namespace in the cluster can be deleted", "deploy/components/output", nil,
		},
		"no kubeconfig": {
			[]string{"--kubeconfig", "/nowhere"}, "kubeconfig", "/nowhere", "--kubeconfig", []string{"rights", "crd", "secret", "output"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := doctor(t, b.Lab, c.args...)
			require.Equal(t, "problem", found[c.check].Verdict, "%+v", found)
			require.Contains(t, found[c.check].Message, c.says)
			require.Contains(t, found[c.check].Do, c.do)
			for _, skipped := range c.skipped {
				require.Equal(t, "skipped", found[skipped].Verdict, "%+v", found[skipped])
			}
		})
	}
}

func TestTheDoctorSeesWhatIsAway(t *testing.T) {
	b := trial.New(t)
	for part, check := range map[string]string{"schedd": "schedd", "receiver-net": "receiver", "kdc": "ticket"} {
		t.Run(part, func(t *testing.T) {
			t.Cleanup(func() { require.NoError(t, b.Lab.Part(part).Start(context.WithoutCancel(t.Context()))) })
			require.NoError(t, b.Lab.Part(part).Stop(t.Context()))
			require.Equal(t, []string{check}, problems(doctor(t, b.Lab)))
		})
	}
	t.Run("htcd", func(t *testing.T) {
		t.Cleanup(func() { require.NoError(t, b.Lab.Part("htcd").Start(context.WithoutCancel(t.Context()))) })
		require.NoError(t, b.Lab.Part("htcd").Stop(t.Context()))
		found := doctor(t, b.Lab)
		require.Equal(t, "problem", found["receiver"].Verdict)
		require.Contains(t, found["volume"].Message, "can be written")
	})
}

// An older version's CRD has one field less; without the CRD there is nothing to check.
func TestTheDoctorSeesACRDThatIsNotThisOne(t *testing.T) {
	b := trial.New(t)
	const name = "htcjobs.htc.cern.ch"
	file, err := filepath.Abs("../../deploy/base/crd/htc.cern.ch_htcjobs.yaml")
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_, err := b.Lab.Run(ctx, "kubectl", "wait", "--for=delete", "crd/"+name, "--timeout="+trial.Patience.String())
		require.NoError(t, err)
		require.Eventually(t, func() bool { // kubectl wait fails for a CRD that has no conditions yet
			_, err := b.Lab.Run(ctx, "kubectl", "apply", "--server-side", "--force-conflicts", "-f", file)
			if err == nil {
				_, err = b.Lab.Run(ctx, "kubectl", "wait", "--for=condition=Established", "crd/"+name)
			}
			return err == nil
		}, trial.Patience, 100*time.Millisecond)
	})
	b.Kubectl(
		"patch",
		"crd",
		name,
		"--type=json",
		"-p",
		`[{"op": "remove", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/ttlSecondsAfterFinished"}]`,
	)
	b.Eventually(func() bool {
		return strings.Contains(doctor(t, b.Lab)["crd"].Message, "it has no spec.ttlSecondsAfterFinished")
	}, func() string { return "the older CRD was not noticed" })

	b.Kubectl("delete", "crd", name, "--wait=false")
	b.Eventually(func() bool {
		found := doctor(t, b.Lab)
		return found["crd"].Verdict == "problem" && strings.Contains(found["crd"].Do, "deploy/base/crd")
	}, func() string { return "that there is no CRD was not noticed" })
}

// It is the schedd that has to let its own host in.
func TestTheDoctorSeesThatNoWorkflowCouldRun(t *testing.T) {
	b := trial.New(t)
	file := b.Lab.Path("condor", "server.conf")
	before, err := os.ReadFile(file)
	require.NoError(t, err)
	with := func(ctx context.Context, text string) {
		require.NoError(t, b.Lab.Part("schedd").Stop(ctx))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		require.NoError(t, b.Lab.Part("schedd").Start(ctx))
	}
	t.Cleanup(func() { with(context.WithoutCancel(t.Context()), string(before)) })
	with(t.Context(), string(before)+"SCHEDD.SEC_WRITE_AUTHENTICATION_METHODS = KERBEROS, IDTOKENS, SCITOKENS\n")
	found := doctor(t, b.Lab)
	require.Equal(t, []string{"workflows"}, problems(found), "%+v", found)
	require.Contains(
		t,
		found["workflows"].Message,
		"HTCWorkflows cannot run: the schedd takes no jobs that its own host sends as this account: SCHEDD.SEC_WRITE_AUTHENTICATION_METHODS needs FS",
	)
	require.Contains(t, found["workflows"].Do, "docs/configure.md")
	require.Equal(t, "skipped", doctor(t, b.Lab, "--workflows=false")["workflows"].Verdict)
	require.Empty(t, b.Condor("condor_q", `JobBatchName == "htcd doctor"`), "nothing is left in the queue")
}
