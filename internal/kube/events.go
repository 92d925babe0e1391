package kube

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"

	"htc.cern.ch/htcd/internal/kube/v1alpha1"
)

// maxNote is how long an Event's text may be, in bytes; the apiserver refuses 1,024 and more.
const maxNote = 1000

// RecordedEvents is Events over client-go's recorder.
type RecordedEvents struct{ Recorder events.EventRecorder }

func (e RecordedEvents) Normal(job *v1alpha1.HTCJob, reason, message string) {
	e.Recorder.Eventf(job, nil, corev1.EventTypeNormal, reason, "Run", "%s", shorten(message, maxNote))
}

func (e RecordedEvents) Warning(job *v1alpha1.HTCJob, reason, message string) {
	e.Recorder.Eventf(job, nil, corev1.EventTypeWarning, reason, "Run", "%s", shorten(message, maxNote))
}

// shorten cuts s to at most limit bytes, at a character's edge, and shows that it did.
func shorten(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	cut := limit - len("…")
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + "…"
}
