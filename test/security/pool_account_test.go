package security

import (
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/test/lab/parts"
	"htc.cern.ch/htcd/test/trial"
)

// An HTCPool says as whom jobs are sent, whatever account the namespace has; that of another namespace it cannot name.
func TestAPoolSaysAsWhomJobsAreSent(t *testing.T) {
	hers, theirs := trial.New(t), trial.New(t)
	granted(hers)
	restarted(t, "--namespace-secrets", "--pool-secrets=pool-account")
	account(hers, "alice", parts.Passwords["alice"])
	accountNamed(theirs, "pool-account", "alice", parts.Passwords["alice"])
	common := hers.Pool("common", "{account: {from: Common}}")
	named := hers.Pool("named", "{account: {secretName: pool-account}}")
	secret := hers.Pool("secret", "{account: {secretName: token}}")
	by := func(pool string) func(*v1alpha1.HTCJob) {
		return func(job *v1alpha1.HTCJob) { job.Spec.Pool = &v1alpha1.Pool{Name: pool} }
	}

	for _, c := range []struct {
		b     *trial.Bench
		name  string
		pool  string
		owner string
	}{
		{hers, "common", common, "robot"},
		{theirs, "named", named, "alice"},
	} {
		job := c.b.Create(c.name, "exit 3\n", trial.Unpacked, by(c.pool))
		ended := c.b.Fetched(c.name)
		require.EqualValues(t, 3, *ended.Status.Failures[0].ExitCode)
		require.Equal(t, []string{c.owner}, owners(c.b, job))
		c.b.Create(c.name+"-kept", "sleep 1000\n", trial.Unpacked, by(c.pool))
		c.b.Phase(c.name+"-kept", v1alpha1.PhaseRunning)
		c.b.Kubectl("delete", "htcjob", c.name+"-kept", "--timeout="+trial.Patience.String()) // by the same account
	}
	hers.Create("named", "exit 3\n", trial.Unpacked, by(named))
	hers.Until(
		"named",
		"without that Secret",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "SecretMissing" },
	)
	hers.Create("secret", "exit 3\n", trial.Unpacked, by(secret))
	invalid := hers.Until(
		"secret",
		"waiting",
		func(job *v1alpha1.HTCJob) bool { return job.Status.Reason == "PoolInvalid" },
	)
	require.Contains(
		t,
		hers.Condition(invalid, v1alpha1.ConditionSubmitted).Message,
		"account.secretName: htcd may read Secrets of the names kinit-secret, pool-account only (--pool-secrets)",
	)
	for _, b := range []*trial.Bench{hers, theirs} {
		b.Kubectl("delete", "htcjob", "--all", "--timeout="+trial.Patience.String())
	}
}
