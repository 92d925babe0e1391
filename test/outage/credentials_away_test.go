package outage

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
)

// A job starts with the credential that it was sent with, keeps it while nobody answers, and reads the next one
// afterwards.
func TestAJobKeepsItsCredentialWhileHTCdIsAway(t *testing.T) {
	o := begin(t, "--callback-deadline=5s")
	write := func(text string) {
		secret, err := json.Marshal(map[string]any{
			"apiVersion": "v1",
			"kind":       "Secret",
			"metadata":   map[string]any{"name": "notes", "labels": map[string]string{"htc.cern.ch/jobs": "true"}},
			"stringData": map[string]string{"text": text},
		})
		require.NoError(t, err)
		o.ApplyText(string(secret))
	}
	write("one")
	o.do(o.part("receiver-net").Stop)
	o.Create("keeps", `last=
while [ "$last" != two ]; do
	now=$(cat "$HTC_CREDENTIALS/note") || exit 3
	[ "$now" = "$last" ] || echo "$now"
	last=$now
	sleep 0.2
done
`, func(job *v1alpha1.HTCJob) {
		job.Spec.Credentials = []v1alpha1.Credential{
			{Name: "note", SecretKeyRef: v1alpha1.KeyRef{Name: "notes", Key: "text"}, As: v1alpha1.PlainFile},
		}
	})
	o.Phase("keeps", v1alpha1.PhaseRunning)
	o.do(o.part("htcd").Kill)
	write("two")
	o.do(o.part("htcd").Start)
	o.do(o.part("receiver-net").Start)
	job := o.Phase("keeps", v1alpha1.PhaseSucceeded)
	require.Equal(t, "one\ntwo\n", o.Output(job, 0))
	o.once(job)
	o.gone()
}
