package lifecycle

import (
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

func TestTheConditionSaysHowFarArtifactsArePushed(t *testing.T) {
	const kind = v1alpha1.ConditionOutputsPushed
	denied := &Blocker{Reason: "ArtifactForbidden", Message: "denied"}
	for name, c := range map[string]struct {
		state     ledger.RunState
		confirmed bool
		active    int
		waiting   int
		pushes    ledger.PushCounts
		unpushed  *Blocker
		want      string
	}{
		"there are to be none":                  {ledger.Submitted, true, 0, 0, ledger.PushCounts{}, nil, ""},
		"nothing was sent":                      {ledger.Intent, false, 0, 0, ledger.PushCounts{Any: true}, nil, ""},
		"jobs run":                              {ledger.Submitted, false, 2, 0, ledger.PushCounts{Any: true, Pushed: 1}, nil, "False NotEnded: not every job has ended; the artifacts of each are pushed when its output is here"},
		"jobs run, and the registry refuses":    {ledger.Submitted, false, 2, 0, ledger.PushCounts{Any: true, Unpushed: 1}, denied, "False ArtifactForbidden: denied"},
		"the registry refused something before": {ledger.Submitted, false, 2, 0, ledger.PushCounts{Any: true}, denied, "False NotEnded: not every job has ended; the artifacts of each are pushed when its output is here"},
		"the output is not here":                {ledger.Submitted, true, 0, 1, ledger.PushCounts{Any: true, Pushed: 1}, nil, "False Fetching: artifacts are pushed when the output of the jobs is here"},
		"HTCondor has not said so":              {ledger.Submitted, false, 0, 0, ledger.PushCounts{Any: true, Pushed: 1}, nil, "False Fetching: artifacts are pushed when the output of the jobs is here"},
		"one is to be pushed":                   {ledger.Submitted, true, 0, 1, ledger.PushCounts{Any: true, Unpushed: 1}, nil, "False Pushing: 1 artifact to be pushed"},
		"one cannot be":                         {ledger.Submitted, true, 0, 0, ledger.PushCounts{Any: true, Pushed: 2, NotPushed: 1, Note: "odd"}, nil, "False NotPushed: 2 artifacts are pushed, 1 cannot be pushed; odd"},
		"all are pushed":                        {ledger.Submitted, true, 0, 0, ledger.PushCounts{Any: true, Pushed: 2}, nil, "True Pushed: 2 artifacts are pushed"},
		"those of a suspended attempt":          {ledger.Removed, true, 0, 0, ledger.PushCounts{Any: true, Pushed: 1}, nil, "True Pushed: 1 artifact is pushed"},
		"all have failed":                       {ledger.Submitted, true, 0, 0, ledger.PushCounts{Any: true}, nil, "True NothingToPush: no job has succeeded and left an artifact"},
	} {
		t.Run(name, func(t *testing.T) {
			status := v1alpha1.HTCJobStatus{
				Conditions: []metav1.Condition{{Type: kind, Status: "Unknown", Reason: "Before"}},
			}
			set := func(kind string, is metav1.ConditionStatus, reason, message string) {
				meta.SetStatusCondition(
					&status.Conditions,
					metav1.Condition{Type: kind, Status: is, Reason: reason, Message: message},
				)
			}
			s := Situation{
				Run: &ledger.Run{State: c.state, Confirmed: c.confirmed}, Counts: ledger.Counts{Active: c.active},
				Output: ledger.OutputCounts{Waiting: c.waiting}, Pushes: c.pushes,
			}
			pushedCondition(set, &status, s, View{Unpushed: c.unpushed})
			got := ""
			if said := meta.FindStatusCondition(status.Conditions, kind); said != nil {
				got = string(said.Status) + " " + said.Reason + ": " + said.Message
			}
			require.Equal(t, c.want, got)
		})
	}
}
