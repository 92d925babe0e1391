package inputs

import "fmt"

// The reasons why an HTCJob waits for an input; those of Secrets are in package jobsecrets.
const (
	ReasonConfigMapNotFound    = "ConfigMapNotFound"
	ReasonConfigMapForbidden   = "ConfigMapForbidden"
	ReasonConfigMapKeyNotFound = "ConfigMapKeyNotFound"
	ReasonUploadNotFound       = "UploadNotFound"
	ReasonHTCJobNotFound       = "HTCJobNotFound"
	ReasonHTCJobNotEnded       = "HTCJobNotEnded"
	ReasonHTCJobFailed         = "HTCJobFailed"
	ReasonFetching             = "Fetching" // artifacts are on their way
)

// Waiting is an error of a source that may still appear.
type Waiting struct {
	Reason, Message string
	Input           string // its name
	// Usual means that nobody needs to do anything.
	Usual bool
}

func (w *Waiting) Error() string { return w.Message }

func waiting(reason, format string, args ...any) error {
	return &Waiting{Reason: reason, Message: fmt.Sprintf(format, args...)}
}

// Failed is an error of a source that will not appear by itself.
type Failed struct{ Message string }

func (f *Failed) Error() string { return f.Message }

func failed(format string, args ...any) error { return &Failed{fmt.Sprintf(format, args...)} }
