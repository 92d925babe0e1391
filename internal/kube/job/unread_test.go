package job

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/crosscheck"
	"htc.cern.ch/htcd/internal/schedd/condor"
)

// counter is an Observer that counts jobs whose ads cannot be read.
type counter struct {
	nobody
	unread int
}

func (c *counter) Unread(jobs int) { c.unread += jobs }

func TestAJobWhoseAdCannotBeReadIsPresentAndHeardOfOnce(t *testing.T) {
	w := newWorld(t)
	counted := &counter{}
	w.Observer = counted
	heard := func() (events []string) {
		for _, event := range w.events {
			if strings.Contains(event, "AdUnreadable") {
				events = append(events, event)
			}
		}
		return events
	}
	w.apply(htcjob("three", queueOf(3)))
	w.apply(htcjob("other"))
	w.schedd.Edit(1, 1, func(j *condor.Job) { j.Unread = true })
	w.schedd.Complete(1, 0, 0)
	w.schedd.Lose(1, 2)
	w.schedd.Complete(2, 0, 0)
	for range 3 {
		w.crosscheck()
		w.later(crosscheck.LostAfter)
	}
	job := w.job("three")
	require.Equal(t, []int32{1, 1, 1}, counts(job))
	require.Equal(t, "1.2", job.Status.Failures[0].JobID, "1.1 is not lost")
	require.Equal(t, v1alpha1.PhaseSucceeded, w.job("other").Status.Phase)
	require.Equal(t, 3, counted.unread)
	require.Len(t, heard(), 1)
	require.Contains(t, heard()[0], "Warning AdUnreadable: HTCondor's ad of job 1.1 cannot be fetched or read")

	w.schedd.Edit(1, 1, func(j *condor.Job) { j.Unread = false })
	w.schedd.Complete(1, 1, 0)
	w.later(time.Minute)
	w.crosscheck()
	require.Equal(t, []int32{0, 2, 1}, counts(w.job("three")))
	require.Equal(t, 3, counted.unread)
	require.Len(t, heard(), 1)
}
