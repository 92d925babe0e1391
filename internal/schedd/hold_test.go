package schedd

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/internal/schedd/condor"
)

func TestNoJobToHoldOrToReleaseIsNoError(t *testing.T) {
	last := func(verb string) string {
		return fmt.Sprintf(`printf "\nCouldn't find/%s all jobs matching constraint (x)\n" >&2; exit 1`, verb)
	}
	client := tools(t, long, map[string]string{"condor_hold": last("hold"), "condor_release": last("release")})
	require.NoError(t, failed(client.Change(t.Context(), Identity{}, HoldIdle{Where: "x", Reason: "y"})))
	require.NoError(t, failed(client.Change(t.Context(), Identity{}, ReleaseHeld{Where: "x", Reason: "y"})))

	client = tools(
		t,
		long,
		map[string]string{
			"condor_hold": `echo "AUTHENTICATE:1003:Failed to authenticate with any method" >&2; ` + last("hold"),
		},
	)
	require.Equal(
		t,
		condor.Credentials,
		condor.KindOf(failed(client.Change(t.Context(), Identity{}, HoldIdle{Where: "x", Reason: "y"}))),
	)
}

func TestOnlyOurHoldIsAPools(t *testing.T) {
	ours := condor.Job{
		Status:            condor.Held,
		HoldReasonCode:    condor.PoolHoldCode,
		HoldReasonSubCode: condor.PoolHoldSubCode,
	}
	require.True(t, ours.HeldByPool())
	for _, edit := range []func(*condor.Job){
		func(j *condor.Job) { j.Status = condor.Idle },
		func(j *condor.Job) { j.HoldReasonCode = 34 },
		func(j *condor.Job) { j.HoldReasonSubCode = 0 },
	} {
		j := ours
		edit(&j)
		require.False(t, j.HeldByPool(), "%+v", j)
	}
}
