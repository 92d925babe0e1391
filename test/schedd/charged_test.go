package schedd_test

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

// condor_submit runs as htcd here, and the schedd gives the jobs to robot. The negotiator charges whom the slot names.
func TestAJobOfAGroupIsChargedToItsOwner(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ options, group, who string }{
		"by accounting_group": {"accounting_group = a", "a", "a.robot"},
		"by nice_user":        {"nice_user = true", "nice-user", "nice-user.robot"},
		"unless another is named": {
			"accounting_group = a\naccounting_group_user = alice", "a", "a.alice",
		},
		"unless an attribute says": {`+AccountingGroup = "b.any"`, "undefined", "b.any"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			b.d.Source, b.d.Options, b.d.Allow = "sleep 3600", c.options, []string{"accounting_group_user"}
			cluster := b.submit()
			id := b.until("runs", func(j condor.Job) bool { return j.Status == condor.Running })[0].ID()
			said := func(command string, args ...string) string {
				cmd := exec.CommandContext(t.Context(), command, args...)
				cmd.Env = append(os.Environ(), "KRB5CCNAME="+b.id.CCache)
				out, err := cmd.CombinedOutput()
				require.NoError(t, err, string(out))
				return strings.TrimSpace(string(out))
			}
			ad := said("condor_q", strconv.Itoa(cluster.ID), "-af", "AcctGroup", "AccountingGroup")
			require.Equal(t, c.group+" "+c.who, ad)
			require.Eventually(t, func() bool {
				slot := said("condor_status", "-constraint", `JobId == "`+id+`"`, "-af", "AccountingGroup")
				account, _, _ := strings.Cut(slot, "@")
				return account == c.who
			}, patience, time.Second)
		})
	}
}
