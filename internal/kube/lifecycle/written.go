package lifecycle

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"htc.cern.ch/htcd/api/v1alpha1"
	"htc.cern.ch/htcd/internal/ledger"
)

// procPlace stands for a proc's number in the ledger's destinations.
const procPlace = "{proc}"

// MaxOutputs is how many outputs a status lists.
const MaxOutputs = 100

// maxOutputsSize bounds the list's text: a single URL may have several KiB once its place-holders are filled.
const maxOutputsSize = 64 << 10

// describeOutputs lists what was written elsewhere.
func describeOutputs(s Situation) []v1alpha1.WrittenOutput {
	var all []v1alpha1.WrittenOutput
	size := 0
	for _, w := range s.Written[:min(len(s.Written), MaxOutputs)] {
		o := v1alpha1.WrittenOutput{
			Path:     w.Path,
			Proc:     int32(w.Proc),
			URL:      At(w.URL, w.Proc),
			Artifact: At(w.Artifact, w.Proc),
			Digest:   w.Digest,
		}
		if w.Size >= 0 {
			o.Size = new(w.Size)
		}
		if size += len(o.Path) + len(o.URL) + len(o.Artifact) + len(o.Digest); size > maxOutputsSize {
			return all
		}
		all = append(all, o)
	}
	return all
}

// WrittenIn is the reverse of describeOutputs: what a status says was written to these destinations.
func WrittenIn(status v1alpha1.HTCJobStatus, to []ledger.Destination) (all []ledger.Written) {
	for _, o := range status.Outputs {
		i := slices.IndexFunc(to, func(d ledger.Destination) bool { return d.Path == o.Path })
		if i < 0 {
			continue
		}
		w := ledger.Written{Destination: to[i], Proc: int(o.Proc), Size: ledger.UnknownSize, Digest: o.Digest}
		if o.Size != nil {
			w.Size = *o.Size
		}
		if o.Artifact != "" {
			w.Push = ledger.Pushed
		}
		all = append(all, w)
	}
	return all
}

// At returns a destination of one proc.
func At(destination string, proc int) string {
	return strings.ReplaceAll(destination, procPlace, strconv.Itoa(proc))
}

// pushedCondition says how many artifacts of the newest attempt have been pushed. An HTCJob that makes none has no such
// condition.
func pushedCondition(set SetCondition, status *v1alpha1.HTCJobStatus, s Situation, v View) {
	run, n := s.Run, s.Pushes
	if run == nil || !n.Any || run.State != ledger.Submitted && run.State != ledger.Removed {
		meta.RemoveStatusCondition(&status.Conditions, v1alpha1.ConditionOutputsPushed)
		return
	}
	var waits *Blocker
	switch {
	case s.Counts.Active > 0:
		waits = &Blocker{
			Reason:  "NotEnded",
			Message: "not every job has ended; the artifacts of each are pushed when its output is here",
		}
	case n.Unpushed == 0 && (s.Output.Waiting > 0 || !run.Confirmed):
		waits = &Blocker{Reason: "Fetching", Message: "artifacts are pushed when the output of the jobs is here"}
	}
	v.PushedCondition(set, n, waits, "no job has succeeded and left an artifact")
}

// PushedCondition says how many artifacts of an attempt have been pushed. waits is what those wait for that are not
// known yet, nil if there are none; nothing says that none was made.
func (v View) PushedCondition(set SetCondition, n ledger.PushCounts, waits *Blocker, nothing string) {
	const kind = v1alpha1.ConditionOutputsPushed
	switch {
	case n.Unpushed > 0 && v.Unpushed != nil:
		set(kind, metav1.ConditionFalse, v.Unpushed.Reason, v.Unpushed.Message)
	case waits != nil:
		set(kind, metav1.ConditionFalse, waits.Reason, waits.Message)
	case n.Unpushed > 0:
		set(kind, metav1.ConditionFalse, "Pushing", Plural(n.Unpushed, "artifact")+" to be pushed")
	case n.NotPushed > 0:
		set(
			kind,
			metav1.ConditionFalse,
			ReasonNotPushed,
			fmt.Sprintf("%s pushed, %d cannot be pushed; %s", IsOrAre(n.Pushed, "artifact"), n.NotPushed, n.Note),
		)
	case n.Pushed == 0:
		set(kind, metav1.ConditionTrue, "NothingToPush", nothing)
	default:
		set(kind, metav1.ConditionTrue, "Pushed", IsOrAre(n.Pushed, "artifact")+" pushed")
	}
}

// ReasonNotPushed is the reason, in the condition and the Event, when some outputs can never be pushed.
const ReasonNotPushed = "NotPushed"
